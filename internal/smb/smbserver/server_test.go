package smbserver

import (
	"fmt"
	"testing"

	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
	"github.com/pagewire/pagewire/internal/smb/smbcrypt"
)

// TestDialects reads and writes a file under every dialect and protection.
func TestDialects(t *testing.T) {
	type how struct {
		dialect smb2msg.Dialect
		cipher  smbcrypt.Cipher
		signing smbcrypt.Signing
	}
	cases := []how{
		{smb2msg.SMB202, 0, smbcrypt.HMACSHA256},
		{smb2msg.SMB210, 0, smbcrypt.HMACSHA256},
		{smb2msg.SMB300, smbcrypt.AES128CCM, smbcrypt.AESCMAC},
		{smb2msg.SMB302, smbcrypt.AES128CCM, smbcrypt.AESCMAC},
	}
	for _, cipher := range []smbcrypt.Cipher{smbcrypt.AES128CCM, smbcrypt.AES128GCM, smbcrypt.AES256CCM, smbcrypt.AES256GCM} {
		cases = append(cases, how{smb2msg.SMB311, cipher, smbcrypt.AESGMAC})
	}
	for _, signing := range []smbcrypt.Signing{smbcrypt.HMACSHA256, smbcrypt.AESCMAC} {
		cases = append(cases, how{smb2msg.SMB311, smbcrypt.AES128GCM, signing})
	}
	for _, h := range cases {
		for _, mode := range []string{"plain", "signed", "sealed"} {
			if mode == "sealed" && h.cipher == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%v/%v/%v/%v", h.dialect, h.cipher, h.signing, mode), func(t *testing.T) {
				cfg := Config{RequireSigning: mode == "signed", RequireSealing: mode == "sealed"}
				if h.dialect == smb2msg.SMB311 {
					cfg.Ciphers, cfg.Signings = []smbcrypt.Cipher{h.cipher}, []smbcrypt.Signing{h.signing}
				}
				s := start(t, cfg)
				c := connect(t, s)
				resp := c.negotiate(h.dialect)
				if resp.Dialect != h.dialect || c.cipher != h.cipher || c.signing != h.signing {
					t.Fatalf("got %v, %v, %v; want %v", resp.Dialect, c.cipher, c.signing, h)
				}
				if r := c.setUp("user", "pass"); r.Status != ntstatus.Success {
					t.Fatal(r.Status)
				}
				if c.seal != (mode == "sealed") {
					t.Fatalf("told to seal: %v", c.seal)
				}
				c.sign = mode == "signed"
				c.tree = c.do(smb2msg.CommandTreeConnect, &smb2msg.TreeConnectRequest{Path: `\\server\SHARE`}).TreeID
				id := c.open("file")
				if got := c.write(id, 3, "hello"); got != ntstatus.Success {
					t.Fatalf("WRITE: %v", got)
				}
				if got, status := c.read(id, 0, 100); string(got) != "\x00\x00\x00hello" {
					t.Fatalf("READ = %q, %v", got, status)
				}
				if got := c.close(id); got != ntstatus.Success {
					t.Fatalf("CLOSE: %v", got)
				}
				st := s.Stats()
				if (st.SignedRequests > 0) != (mode == "signed") || (st.SealedFrames > 0) != (mode == "sealed") {
					t.Errorf("counted %d signed and %d sealed", st.SignedRequests, st.SealedFrames)
				}
				if st.Requests["READ"] != 1 || st.ReadSizes[8] != 1 || st.Read != 8 || st.Written != 5 {
					t.Errorf("counted %+v", st)
				}
			})
		}
	}
}

// TestProtectionDemanded sends what is not protected as the server wants it.
func TestProtectionDemanded(t *testing.T) {
	echo := func(c *client) ntstatus.Status { return c.do(smb2msg.CommandLogoff, &smb2msg.LogoffRequest{}).Status }
	t.Run("unsigned", func(t *testing.T) {
		c := connect(t, start(t, Config{RequireSigning: true}))
		c.negotiate()
		c.setUp("user", "pass")
		if got := echo(c); got != ntstatus.AccessDenied {
			t.Errorf("unsigned request: %v, want ACCESS_DENIED", got)
		}
		c.sign = true
		if got := echo(c); got != ntstatus.Success {
			t.Errorf("signed request: %v, want success", got)
		}
	})
	t.Run("wrong signature", func(t *testing.T) {
		c := logOn(t, start(t, Config{}))
		c.sign = true
		frame := c.frame(message{hdr: smb2msg.Header{Command: smb2msg.CommandLogoff}, body: &smb2msg.LogoffRequest{}})
		frame[len(frame)-1] ^= 1
		c.nc.Write(frame)
		if got := c.receive()[0].Status; got != ntstatus.AccessDenied {
			t.Errorf("got %v, want ACCESS_DENIED", got)
		}
	})
	t.Run("unsealed", func(t *testing.T) {
		c := connect(t, start(t, Config{RequireSealing: true}))
		c.negotiate()
		c.setUp("user", "pass")
		c.seal = false
		if got := echo(c); got != ntstatus.AccessDenied {
			t.Errorf("got %v, want ACCESS_DENIED", got)
		}
	})
	t.Run("no cipher", func(t *testing.T) {
		c := connect(t, start(t, Config{RequireSealing: true}))
		c.negotiate(smb2msg.SMB210)
		if got := c.setUp("user", "pass").Status; got != ntstatus.AccessDenied {
			t.Errorf("got %v, want ACCESS_DENIED", got)
		}
	})
	t.Run("sealed share", func(t *testing.T) {
		tree := Memory(newFS(t, memfsConfig))
		s := start(t, Config{Shares: []Share{{Name: "share", Tree: tree}, {Name: "sealed", Tree: tree, Seal: true}}})
		c := logOn(t, s)
		r := c.do(smb2msg.CommandTreeConnect, &smb2msg.TreeConnectRequest{Path: `\\server\sealed`})
		var resp smb2msg.TreeConnectResponse
		c.body(r, &resp)
		if resp.ShareFlags&smb2msg.ShareFlagEncryptData == 0 {
			t.Error("the share does not say that it wants sealing")
		}
		c.tree = r.TreeID
		if got := c.do(smb2msg.CommandCreate, opening("")).Status; got != ntstatus.AccessDenied {
			t.Errorf("CREATE unsealed: %v, want ACCESS_DENIED", got)
		}
		c.seal = true
		if got := c.do(smb2msg.CommandCreate, opening("")).Status; got != ntstatus.Success {
			t.Errorf("CREATE sealed: %v, want success", got)
		}
	})
	t.Run("broken seal", func(t *testing.T) {
		c := logOn(t, start(t, Config{}))
		c.seal = true
		frame := c.frame(message{hdr: smb2msg.Header{Command: smb2msg.CommandEcho}, body: &smb2msg.EchoRequest{}})
		frame[len(frame)-1] ^= 1
		c.nc.Write(frame)
		c.ended()
	})
}

func TestLogons(t *testing.T) {
	for _, c := range []struct {
		name           string
		cfg            Config
		user, password string
		want           ntstatus.Status
		flags          smb2msg.SessionFlags
	}{
		{"user", Config{}, "USER", "pass", ntstatus.Success, 0},
		{"wrong password", Config{Guest: true}, "user", "Pass", ntstatus.LogonFailure, 0},
		{"unknown", Config{Anonymous: true}, "nobody", "pass", ntstatus.LogonFailure, 0},
		{"guest", Config{Guest: true}, "nobody", "pass", ntstatus.Success, smb2msg.SessionFlagIsGuest},
		{"guest, signing", Config{Guest: true, RequireSigning: true}, "nobody", "pass", ntstatus.AccessDenied, 0},
		{"anonymous", Config{Anonymous: true}, "", "", ntstatus.Success, smb2msg.SessionFlagIsNull},
		{"anonymous, unwelcome", Config{Guest: true}, "", "", ntstatus.LogonFailure, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := connect(t, start(t, c.cfg))
			conn.negotiate()
			r := conn.setUp(c.user, c.password)
			var resp smb2msg.SessionSetupResponse
			if r.Status == ntstatus.Success {
				conn.body(r, &resp)
			}
			if r.Status != c.want || resp.SessionFlags != c.flags {
				t.Errorf("got %v and flags %v, want %v and %v", r.Status, resp.SessionFlags, c.want, c.flags)
			}
		})
	}
}

// TestSessions ends sessions and trees in every way, and uses them afterwards.
func TestSessions(t *testing.T) {
	s := start(t, Config{}, "file")
	c := logOn(t, s)
	id := c.open("file")
	if got := c.do(smb2msg.CommandTreeConnect, &smb2msg.TreeConnectRequest{Path: `\\server\none`}).Status; got != ntstatus.BadNetworkName {
		t.Errorf("unknown share: %v, want BAD_NETWORK_NAME", got)
	}
	if got := c.do(smb2msg.CommandTreeDisconnect, &smb2msg.TreeDisconnectRequest{}).Status; got != ntstatus.Success {
		t.Errorf("TREE_DISCONNECT: %v", got)
	}
	if _, got := c.read(id, 0, 1); got != ntstatus.NetworkNameDeleted {
		t.Errorf("READ afterwards: %v, want NETWORK_NAME_DELETED", got)
	}
	c.tree = c.do(smb2msg.CommandTreeConnect, &smb2msg.TreeConnectRequest{Path: `\\server\share`}).TreeID
	if _, got := c.read(id, 0, 1); got != ntstatus.FileClosed {
		t.Errorf("READ of an old handle: %v, want FILE_CLOSED", got)
	}
	if got := c.do(smb2msg.CommandLogoff, &smb2msg.LogoffRequest{}).Status; got != ntstatus.Success {
		t.Errorf("LOGOFF: %v", got)
	}
	if got := c.do(smb2msg.CommandCreate, opening("file")).Status; got != ntstatus.UserSessionDeleted {
		t.Errorf("CREATE afterwards: %v, want USER_SESSION_DELETED", got)
	}
	if got := c.do(smb2msg.CommandEcho, &smb2msg.EchoRequest{}).Status; got != ntstatus.Success {
		t.Errorf("ECHO without a session: %v, want success", got)
	}

	// A client that comes back ends what it had open.
	old, fresh := logOn(t, s), connect(t, s)
	exclusive := opening("file")
	exclusive.ShareAccess = 0
	old.create(exclusive)
	fresh.negotiate()
	r := fresh.setUpAfter("user", "pass", old.session)
	if r.Status != ntstatus.Success {
		t.Fatalf("SESSION_SETUP: %v", r.Status)
	}
	fresh.tree = fresh.do(smb2msg.CommandTreeConnect, &smb2msg.TreeConnectRequest{Path: `\\server\share`}).TreeID
	if got := fresh.do(smb2msg.CommandCreate, exclusive).Status; got != ntstatus.Success {
		t.Errorf("opening what the session before had open: %v, want success", got)
	}
	if got := old.do(smb2msg.CommandCreate, opening("file")).Status; got != ntstatus.UserSessionDeleted {
		t.Errorf("in the session before: %v, want USER_SESSION_DELETED", got)
	}
}

// TestNegotiate sends what makes no sense at the start of a connection.
func TestNegotiate(t *testing.T) {
	s := start(t, Config{Dialects: []smb2msg.Dialect{smb2msg.SMB210, smb2msg.SMB311}})
	t.Run("none in common", func(t *testing.T) {
		c := connect(t, s)
		r := c.do(smb2msg.CommandNegotiate, &smb2msg.NegotiateRequest{Dialects: []smb2msg.Dialect{smb2msg.SMB202, smb2msg.SMB302}})
		if r.Status != ntstatus.NotSupported {
			t.Errorf("got %v, want NOT_SUPPORTED", r.Status)
		}
	})
	t.Run("3.1.1 without hash", func(t *testing.T) {
		c := connect(t, s)
		r := c.do(smb2msg.CommandNegotiate, &smb2msg.NegotiateRequest{Dialects: []smb2msg.Dialect{smb2msg.SMB311}})
		if r.Status != ntstatus.InvalidParameter {
			t.Errorf("got %v, want INVALID_PARAMETER", r.Status)
		}
	})
	t.Run("twice", func(t *testing.T) {
		c := connect(t, s)
		c.negotiate()
		c.send(message{body: &smb2msg.NegotiateRequest{Dialects: []smb2msg.Dialect{smb2msg.SMB210}}})
		c.ended()
	})
	t.Run("not first", func(t *testing.T) {
		c := connect(t, s)
		c.send(message{hdr: smb2msg.Header{Command: smb2msg.CommandEcho}, body: &smb2msg.EchoRequest{}})
		c.ended()
	})
	for _, garbage := range []string{
		"\x00\x00\x00\x04\xFESMB", "\x00\x00\x00\x00", "\x00\xFF\xFF\xFF", "\x85\x00\x00\x00", "GET / HTTP/1.0\r\n\r\n",
		"\x00\x00\x00\x24\xFFSMB\x75" + string(make([]byte, 31)),
	} {
		t.Run(fmt.Sprintf("garbage %q", garbage[:4]), func(t *testing.T) {
			c := connect(t, s)
			c.nc.Write([]byte(garbage))
			c.ended()
		})
	}
}

// TestMultiProtocol asks for SMB2 with SMB1's NEGOTIATE.
func TestMultiProtocol(t *testing.T) {
	for _, c := range []struct {
		dialects []smb2msg.Dialect
		names    string
		want     smb2msg.Dialect
	}{
		{nil, "\x02NT LM 0.12\x00\x02SMB 2.002\x00\x02SMB 2.???\x00", smb2msg.Wildcard},
		{nil, "\x02NT LM 0.12\x00\x02SMB 2.002\x00", smb2msg.SMB202},
		{[]smb2msg.Dialect{smb2msg.SMB202}, "\x02SMB 2.002\x00\x02SMB 2.???\x00", smb2msg.SMB202},
		{[]smb2msg.Dialect{smb2msg.SMB311}, "\x02SMB 2.002\x00", 0},
		{nil, "\x02NT LM 0.12\x00", 0},
	} {
		t.Run(fmt.Sprintf("%v %q", c.dialects, c.names), func(t *testing.T) {
			conn := connect(t, start(t, Config{Dialects: c.dialects}))
			msg := append([]byte("\xFFSMB\x72"), make([]byte, 28)...)
			msg = append(append(msg, byte(len(c.names)), 0), c.names...)
			conn.nc.Write(append([]byte{0, 0, 0, byte(len(msg))}, msg...))
			if c.want == 0 {
				conn.ended()
				return
			}
			var resp smb2msg.NegotiateResponse
			conn.body(conn.receive()[0], &resp)
			if resp.Dialect != c.want {
				t.Fatalf("got %v, want %v", resp.Dialect, c.want)
			}
			conn.next = 1
			if conn.dialect = resp.Dialect; resp.Dialect == smb2msg.Wildcard {
				conn.negotiate()
			}
			if r := conn.setUp("user", "pass"); r.Status != ntstatus.Success {
				t.Errorf("SESSION_SETUP: %v", r.Status)
			}
		})
	}
}

func TestValidateNegotiate(t *testing.T) {
	s := start(t, Config{})
	validate := func(c *client, change func(*smb2msg.ValidateNegotiateInfoRequest)) {
		h := &c.hello
		m := smb2msg.ValidateNegotiateInfoRequest{
			Capabilities: h.Capabilities, GUID: h.ClientGUID, SecurityMode: h.SecurityMode, Dialects: h.Dialects,
		}
		change(&m)
		c.sign = true
		c.send(message{hdr: smb2msg.Header{Command: smb2msg.CommandIoctl, Credits: 1}, body: &smb2msg.IoctlRequest{
			CtlCode: smb2msg.FsctlValidateNegotiateInfo, FileID: smb2msg.RelatedFileID, Input: m.Append(nil),
			MaxOutputResponse: 24, Flags: smb2msg.IoctlIsFsctl,
		}})
	}
	c := logOn(t, s, smb2msg.SMB210, smb2msg.SMB300)
	validate(c, func(*smb2msg.ValidateNegotiateInfoRequest) {})
	var resp smb2msg.IoctlResponse
	c.body(c.receive()[0], &resp)
	if len(resp.Output) != 24 || resp.Output[22] != 0 || resp.Output[23] != 3 {
		t.Errorf("answer is %x, want 24 bytes that end in the dialect", resp.Output)
	}
	for _, change := range []func(*smb2msg.ValidateNegotiateInfoRequest){
		func(m *smb2msg.ValidateNegotiateInfoRequest) { m.Dialects = append(m.Dialects, smb2msg.SMB302) },
		func(m *smb2msg.ValidateNegotiateInfoRequest) { m.Capabilities ^= smb2msg.CapEncryption },
		func(m *smb2msg.ValidateNegotiateInfoRequest) { m.GUID[0]++ },
		func(m *smb2msg.ValidateNegotiateInfoRequest) { m.SecurityMode ^= smb2msg.SigningRequired },
	} {
		c := logOn(t, s, smb2msg.SMB210, smb2msg.SMB300)
		validate(c, change)
		c.ended()
	}
}
