package smbserver

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/memfs"
	"github.com/pagewire/pagewire/internal/netsim"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

// client sends what a test wants, valid or not. It knows as little of the
// protocol as that takes.
type client struct {
	t       testing.TB
	nc      net.Conn
	br      *bufio.Reader
	guid    [16]byte // ClientGuid
	dialect smb2msg.Dialect
	hello   smb2msg.NegotiateRequest
	preauth smbcrypt.Preauth
	cipher  smbcrypt.Cipher
	signing smbcrypt.Signing

	next    uint64 // MessageId
	session uint64
	tree    uint32
	signer  *smbcrypt.Signer
	sealer  *smbcrypt.Sealer
	sign    bool // requests to come
	seal    bool
}

type appender interface{ Append([]byte) []byte }
type decoder interface {
	Decode(*byteio.Reader) error
}

// message is a request. Its header's zero fields are filled in.
type message struct {
	hdr  smb2msg.Header
	body appender
	data []byte // behind the body
}

// reply is one message of a reply.
type reply struct {
	smb2msg.Header
	msg []byte
}

var memfsConfig = memfs.Config{IgnoreCase: true}

func newFS(t testing.TB, cfg memfs.Config, files ...string) *memfs.FS {
	t.Helper()
	fs := memfs.New(cfg)
	for _, path := range files {
		if err := fs.WriteFile(path, []byte("contents of "+path)); err != nil {
			t.Fatal(err)
		}
	}
	return fs
}

// start runs a server with one user and, unless cfg has others, one share.
func start(t testing.TB, cfg Config, files ...string) *Server {
	t.Helper()
	if cfg.Users == nil {
		cfg.Users = map[string]string{"user": "pass"}
	}
	if cfg.Shares == nil {
		cfg.Shares = []Share{{Name: "share", Tree: Memory(newFS(t, memfsConfig, files...))}}
	}
	s := New(cfg)
	t.Cleanup(s.Close)
	return s
}

func connect(t testing.TB, s *Server) *client {
	near, far := netsim.New(netsim.Config{}).Pipe()
	go s.Serve(far)
	t.Cleanup(func() { near.Close() })
	return &client{t: t, nc: near, br: bufio.NewReader(near), guid: [16]byte{1}}
}

// logOn connects, logs on as the user, and connects to the share.
func logOn(t testing.TB, s *Server, dialects ...smb2msg.Dialect) *client {
	t.Helper()
	return logOnAs(t, s, 1, dialects...)
}

// logOnAs is logOn for a client with another ClientGuid.
func logOnAs(t testing.TB, s *Server, guid byte, dialects ...smb2msg.Dialect) *client {
	t.Helper()
	c := connect(t, s)
	c.guid = [16]byte{guid}
	c.logOn(dialects...)
	return c
}

func (c *client) logOn(dialects ...smb2msg.Dialect) {
	c.t.Helper()
	c.negotiate(dialects...)
	if r := c.setUp("user", "pass"); r.Status != ntstatus.Success {
		c.t.Fatalf("SESSION_SETUP: %v", r.Status)
	}
	r := c.do(smb2msg.CommandTreeConnect, &smb2msg.TreeConnectRequest{Path: `\\server\share`})
	if r.Status != ntstatus.Success {
		c.t.Fatalf("TREE_CONNECT: %v", r.Status)
	}
	c.tree = r.TreeID
}

// frame is messages as they go onto the wire. Requests without a MessageId take
// the next ones.
func (c *client) frame(msgs ...message) []byte {
	b := make([]byte, headroom, 4096)
	for i := range msgs {
		m := &msgs[i]
		h := &m.hdr
		if h.MessageID == 0 && h.Command != smb2msg.CommandCancel {
			h.MessageID = c.next
			c.next += uint64(max(1, h.CreditCharge))
		}
		if h.SessionID == 0 {
			h.SessionID = c.session
		}
		if h.TreeID == 0 {
			h.TreeID = c.tree
		}
		if c.sign && !c.seal {
			h.Flags |= smb2msg.FlagSigned
		}
		start := len(b)
		b = append(m.body.Append(h.Append(b)), m.data...)
		if i < len(msgs)-1 {
			b = smb2msg.PutNextCommand(b, start)
		}
		if c.sign && !c.seal {
			c.signer.Sign(b[start:])
		}
	}
	if c.seal {
		c.sealer.Seal(b[lengthSize:])
	} else {
		b = b[smbcrypt.TransformSize:]
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-lengthSize))
	return b
}

func (c *client) send(msgs ...message) {
	c.t.Helper()
	if _, err := c.nc.Write(c.frame(msgs...)); err != nil {
		c.t.Fatalf("sending: %v", err)
	}
}

// readFrame reads a frame without its length.
func (c *client) readFrame() ([]byte, error) {
	var prefix [lengthSize]byte
	if _, err := io.ReadFull(c.br, prefix[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(prefix[:]), binary.BigEndian.Uint32(prefix[:])+smbcrypt.TagSize)
	_, err := io.ReadFull(c.br, frame)
	return frame, err
}

// receive reads a frame and checks its protection.
func (c *client) receive() []reply {
	c.t.Helper()
	frame, err := c.readFrame()
	if err != nil {
		c.t.Fatalf("receiving: %v", err)
	}
	if smb2msg.ProtocolOf(frame) == smb2msg.ProtocolTransform {
		if frame, err = c.sealer.Open(frame); err != nil {
			c.t.Fatalf("receiving: %v", err)
		}
	} else if c.seal {
		c.t.Fatal("reply to a sealed request is not sealed")
	}
	var replies []reply
	for len(frame) > 0 {
		msg, rest, err := smb2msg.Next(frame)
		if err != nil {
			c.t.Fatal(err)
		}
		frame = rest
		r := reply{msg: msg}
		rd := byteio.NewReader(msg)
		if err := r.Decode(&rd); err != nil {
			c.t.Fatal(err)
		}
		if r.Flags&smb2msg.FlagSigned != 0 && c.signer != nil && !c.signer.Verify(msg) {
			c.t.Fatalf("%v: bad signature", r.Command)
		}
		replies = append(replies, r)
	}
	return replies
}

// ended fails the test unless the server ends the connection.
func (c *client) ended() {
	c.t.Helper()
	for {
		if _, err := c.readFrame(); err != nil {
			return
		}
		c.t.Fatal("got a reply, want the end of the connection")
	}
}

// do sends one request and returns the reply, skipping an interim one.
func (c *client) do(cmd smb2msg.Command, body appender, data ...byte) reply {
	c.t.Helper()
	credits := uint16(64)
	c.send(message{hdr: smb2msg.Header{Command: cmd, Credits: credits}, body: body, data: data})
	for {
		if r := c.receive()[0]; r.Status != ntstatus.Pending {
			return r
		}
	}
}

// body decodes a reply's body.
func (c *client) body(r reply, into decoder) {
	c.t.Helper()
	rd := byteio.NewReader(r.msg)
	rd.Skip(smb2msg.HeaderSize)
	if err := into.Decode(&rd); err != nil {
		c.t.Fatalf("%v, %v: %v", r.Command, r.Status, err)
	}
}

func (c *client) negotiate(dialects ...smb2msg.Dialect) smb2msg.NegotiateResponse {
	c.t.Helper()
	if len(dialects) == 0 {
		dialects = []smb2msg.Dialect{smb2msg.SMB202, smb2msg.SMB210, smb2msg.SMB300, smb2msg.SMB302, smb2msg.SMB311}
	}
	m := smb2msg.NegotiateRequest{
		SecurityMode: smb2msg.SigningEnabled, Capabilities: smb2msg.CapLargeMTU | smb2msg.CapEncryption,
		ClientGUID: c.guid, Dialects: dialects,
		Contexts: smb2msg.NegotiateContexts{
			HashAlgorithms: []uint16{smb2msg.HashSHA512}, Salt: []byte("salt"),
			Ciphers: []uint16{1, 2, 3, 4}, SigningAlgorithms: []uint16{0, 1, 2},
		},
	}
	c.hello = m
	frame := c.frame(message{hdr: smb2msg.Header{Credits: 1}, body: &m})
	c.preauth.Update(frame[lengthSize:])
	if _, err := c.nc.Write(frame); err != nil {
		c.t.Fatal(err)
	}
	r := c.receive()[0]
	c.preauth.Update(r.msg)
	if r.Status != ntstatus.Success {
		c.t.Fatalf("NEGOTIATE: %v", r.Status)
	}
	var resp smb2msg.NegotiateResponse
	c.body(r, &resp)
	c.dialect = resp.Dialect
	c.signing = smbcrypt.DefaultSigning(uint16(c.dialect))
	switch {
	case c.dialect == smb2msg.SMB311:
		c.signing = smbcrypt.Signing(resp.Contexts.SigningAlgorithms[0])
		c.cipher = smbcrypt.Cipher(resp.Contexts.Ciphers[0])
	case resp.Capabilities&smb2msg.CapEncryption != 0:
		c.cipher = smbcrypt.AES128CCM
	}
	return resp
}

// setUp logs on, and returns the last reply.
func (c *client) setUp(user, password string) reply {
	c.t.Helper()
	return c.setUpAfter(user, password, 0)
}

// setUpAfter also ends the session that the client had before.
func (c *client) setUpAfter(user, password string, previous uint64) reply {
	c.t.Helper()
	init, err := auth.NewInitiator(auth.Hint(), auth.NewNTLM(auth.Credentials{User: user, Password: password}, "cifs/server"))
	if err != nil {
		c.t.Fatal(err)
	}
	preauth := c.preauth
	var in []byte
	for {
		token, _, err := init.Next(in)
		if err != nil {
			c.t.Fatal(err)
		}
		frame := c.frame(message{
			hdr:  smb2msg.Header{Command: smb2msg.CommandSessionSetup, Credits: 64},
			body: &smb2msg.SessionSetupRequest{SecurityMode: smb2msg.SigningEnabled, PreviousSessionID: previous, SecurityBuffer: token},
		})
		preauth.Update(frame[lengthSize:])
		if _, err := c.nc.Write(frame); err != nil {
			c.t.Fatal(err)
		}
		r := c.receive()[0]
		c.session = r.SessionID
		if r.Status != ntstatus.MoreProcessingRequired && r.Status != ntstatus.Success {
			return r
		}
		var resp smb2msg.SessionSetupResponse
		c.body(r, &resp)
		if in = resp.SecurityBuffer; r.Status == ntstatus.MoreProcessingRequired {
			preauth.Update(r.msg)
			continue
		}
		if resp.SessionFlags&(smb2msg.SessionFlagIsGuest|smb2msg.SessionFlagIsNull) != 0 {
			return r
		}
		if _, _, err := init.Next(in); err != nil {
			c.t.Fatal(err)
		}
		keys := smbcrypt.DeriveKeys(uint16(c.dialect), c.cipher, init.SessionKey(), &preauth)
		if c.signer, err = smbcrypt.NewSigner(c.signing, keys.Sign); err != nil {
			c.t.Fatal(err)
		}
		if r.Flags&smb2msg.FlagSigned == 0 || !c.signer.Verify(r.msg) {
			c.t.Fatal("the last reply of SESSION_SETUP is not signed")
		}
		if c.cipher != 0 {
			if c.sealer, err = smbcrypt.NewSealer(c.cipher, c.session, keys.Encrypt, keys.Decrypt); err != nil {
				c.t.Fatal(err)
			}
		}
		c.seal = resp.SessionFlags&smb2msg.SessionFlagEncryptData != 0
		return r
	}
}

// opening is a CREATE that opens what is there for everything.
func opening(name string) *smb2msg.CreateRequest {
	return &smb2msg.CreateRequest{
		ImpersonationLevel: smb2msg.ImpersonationImpersonation,
		DesiredAccess:      smb2msg.AccessMaximumAllowed,
		ShareAccess:        smb2msg.ShareRead | smb2msg.ShareWrite | smb2msg.ShareDelete,
		CreateDisposition:  smb2msg.Open,
		Name:               name,
	}
}

// open opens, or makes, a file.
func (c *client) open(name string) smb2msg.FileID {
	c.t.Helper()
	m := opening(name)
	m.CreateDisposition = smb2msg.OpenIf
	return c.create(m)
}

func (c *client) create(m *smb2msg.CreateRequest) smb2msg.FileID {
	c.t.Helper()
	r := c.do(smb2msg.CommandCreate, m)
	if r.Status != ntstatus.Success {
		c.t.Fatalf("CREATE %q: %v", m.Name, r.Status)
	}
	var resp smb2msg.CreateResponse
	c.body(r, &resp)
	return resp.FileID
}

func (c *client) close(id smb2msg.FileID) ntstatus.Status {
	c.t.Helper()
	return c.do(smb2msg.CommandClose, &smb2msg.CloseRequest{FileID: id}).Status
}

// set is SET_INFO for a file.
func (c *client) set(id smb2msg.FileID, class fscc.Class, m appender) ntstatus.Status {
	c.t.Helper()
	return c.do(smb2msg.CommandSetInfo, &smb2msg.SetInfoRequest{
		InfoType: smb2msg.InfoFile, FileInfoClass: class, FileID: id, Buffer: m.Append(nil),
	}).Status
}

// query is QUERY_INFO for a file or its volume.
func (c *client) query(id smb2msg.FileID, kind smb2msg.InfoType, class fscc.Class, m decoder) ntstatus.Status {
	c.t.Helper()
	r := c.do(smb2msg.CommandQueryInfo, &smb2msg.QueryInfoRequest{
		InfoType: kind, FileInfoClass: class, FileID: id, OutputBufferLength: 4096,
	})
	if r.Status != ntstatus.Success {
		return r.Status
	}
	var resp smb2msg.QueryInfoResponse
	c.body(r, &resp)
	rd := byteio.NewReader(slices.Clone(resp.Output))
	if err := m.Decode(&rd); err != nil {
		c.t.Fatalf("class %d: %v", class, err)
	}
	return r.Status
}

// read is a READ, and write a WRITE, of what one credit pays for.
func (c *client) read(id smb2msg.FileID, off uint64, n uint32) ([]byte, ntstatus.Status) {
	c.t.Helper()
	r := c.do(smb2msg.CommandRead, &smb2msg.ReadRequest{FileID: id, Offset: off, Length: n})
	if r.Status != ntstatus.Success {
		return nil, r.Status
	}
	var resp smb2msg.ReadResponse
	c.body(r, &resp)
	return resp.Data, r.Status
}

func (c *client) write(id smb2msg.FileID, off uint64, data string) ntstatus.Status {
	c.t.Helper()
	return c.do(smb2msg.CommandWrite, &smb2msg.WriteRequest{FileID: id, Offset: off, Length: uint32(len(data))}, []byte(data)...).Status
}
