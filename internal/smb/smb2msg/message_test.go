package smb2msg

import (
	"bytes"
	"errors"
	"net/netip"
	"reflect"
	"testing"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/fscc"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
)

type message interface {
	Append([]byte) []byte
	Decode(*byteio.Reader) error
}

var (
	guid   = [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	key    = [16]byte{0xA0, 0xA1, 0xA2, 15: 0xAF}
	fileID = FileID{0x1122334455667788, 0x99AABBCCDDEEFF00}
	token  = []byte("a token of odd length")
	link   = fscc.SymbolicLinkReparseData{SubstituteName: `..\τέλος`, PrintName: "τέλος", Relative: true}
)

// samples has every message and every structure that messages carry, with no
// field left zero.
var samples = []message{
	&NegotiateRequest{SigningEnabled, CapDFS | CapLargeMTU, guid, []Dialect{SMB202, SMB210, SMB300, SMB302}, NegotiateContexts{}},
	&NegotiateRequest{SigningRequired, CapEncryption, guid, []Dialect{SMB311}, NegotiateContexts{
		HashAlgorithms:    []uint16{HashSHA512},
		Salt:              token,
		Ciphers:           []uint16{CipherAES128GCM, CipherAES256CCM, CipherAES128CCM},
		SigningAlgorithms: []uint16{SigningAESGMAC, SigningAESCMAC},
		NetName:           "far",
		TransportFlags:    AcceptTransportLevelSecurity,
	}},
	&NegotiateResponse{SigningEnabled, SMB302, guid, CapLeasing, 1 << 20, 2 << 20, 3 << 20, 5, 6, token, NegotiateContexts{}},
	&NegotiateResponse{SigningEnabled, SMB311, guid, CapLeasing, 1 << 20, 2 << 20, 3 << 20, 5, 6, token, NegotiateContexts{
		HashAlgorithms:    []uint16{HashSHA512},
		Salt:              token,
		Ciphers:           []uint16{CipherAES256GCM},
		SigningAlgorithms: []uint16{SigningAESGMAC},
	}},
	&SessionSetupRequest{SessionBinding, SigningRequired, CapDFS, 7, 8, token},
	&SessionSetupResponse{SessionFlagIsGuest, token},
	&LogoffRequest{},
	&LogoffResponse{},
	&TreeConnectRequest{1, `\\far\share`},
	&TreeConnectResponse{ShareTypePipe, ShareFlagEncryptData, ShareCapDFS, AccessGenericAll},
	&TreeDisconnectRequest{},
	&TreeDisconnectResponse{},
	&CreateRequest{OplockBatch, ImpersonationImpersonation, AccessReadData, fscc.AttributeHidden, ShareRead, OpenIf,
		OptionNonDirectoryFile, `a\b`, nil},
	&CreateRequest{OplockLease, ImpersonationImpersonation, AccessReadData, fscc.AttributeHidden, ShareRead, OpenIf,
		OptionNonDirectoryFile, "abc", []CreateContext{
			{Name: ContextQFid},
			NewCreateContext(ContextRqLs, &Lease{LeaseKey: key}),
			{Name: "a name of odd length.", Data: token},
		}},
	&CreateResponse{OplockII, CreateFlagReparsePoint, ActionCreated, 1, 2, 3, 4, 5, 6, fscc.AttributeNormal, fileID, nil},
	&CreateResponse{OplockII, CreateFlagReparsePoint, ActionCreated, 1, 2, 3, 4, 5, 6, fscc.AttributeNormal, fileID,
		[]CreateContext{{Name: ContextMxAc, Data: token}, {Name: ContextQFid, Data: token}}},
	&CloseRequest{ClosePostQueryAttrib, fileID},
	&CloseResponse{ClosePostQueryAttrib, 1, 2, 3, 4, 5, 6, fscc.AttributeDirectory},
	&FlushRequest{fileID},
	&FlushResponse{},
	&ReadRequest{ReadDataOffset, ReadUnbuffered, 1 << 20, 1 << 40, fileID, 2, 3, 4},
	&ReadResponse{ReadDataOffset, uint32(len(token)), 5, 6, token},
	&WriteRequest{WriteDataOffset, uint32(len(token)), 1 << 40, fileID, 2, 3, WriteThrough, token},
	&WriteResponse{1 << 20, 7},
	&LockRequest{0x15, fileID, []LockElement{{1, 2, LockExclusive}, {3, 4, LockUnlock}}},
	&LockResponse{},
	&IoctlRequest{FsctlPipeTransceive, fileID, token, 1, 2, IoctlIsFsctl},
	&IoctlResponse{FsctlPipeTransceive, fileID, token, token, 3},
	&CancelRequest{},
	&EchoRequest{},
	&EchoResponse{},
	&QueryDirectoryRequest{fscc.ClassFileIDBothDirectory, QueryDirectoryReopen, 1, fileID, 1 << 16, "*"},
	&QueryDirectoryResponse{token},
	&ChangeNotifyRequest{ChangeNotifyWatchTree, 4096, fileID, NotifyFileName},
	&ChangeNotifyResponse{token},
	&QueryInfoRequest{InfoSecurity, fscc.ClassFileAll, 4096, SecurityDACL, QueryRestartScan, fileID, token},
	&QueryInfoResponse{token},
	&SetInfoRequest{InfoFile, fscc.ClassFileRename, SecurityOwner, fileID, token},
	&SetInfoResponse{},
	&OplockBreak{OplockII, fileID},
	&LeaseBreakNotification{3, LeaseBreakAckRequired, key, LeaseRead | LeaseWrite, LeaseRead},
	&LeaseBreak{key, LeaseRead},
	&ErrorResponse{Data: token},
	&ErrorResponse{Contexts: []ErrorContext{{ErrorIDShareRedirect, token}, {ErrorIDDefault, token}}},

	&SymlinkErrorResponse{10, link},
	&Lease{LeaseKey: key, LeaseState: LeaseRead, LeaseFlags: LeaseFlagBreakInProgress},
	&Lease{key, LeaseRead, LeaseFlagParentLeaseKeySet, true, guid, 9},
	&QueryMaximalAccessRequest{1 << 50},
	&QueryMaximalAccessResponse{ntstatus.Status(0xC0000022), AccessReadData},
	&QueryOnDiskIDResponse{1, 2},
	&AllocationSize{1 << 40},
	&TimewarpToken{1 << 50},
	&DurableHandleRequest{},
	&DurableHandleReconnect{fileID},
	&DurableHandleResponse{},
	&DurableHandleRequestV2{1, DurablePersistent, guid},
	&DurableHandleReconnectV2{fileID, guid, DurablePersistent},
	&DurableHandleResponseV2{1, DurablePersistent},
	&ValidateNegotiateInfoRequest{CapDFS, guid, SigningEnabled, []Dialect{SMB210, SMB300}},
	&ValidateNegotiateInfoResponse{CapDFS, guid, SigningEnabled, SMB300},
	&NetworkInterfaceInfo{[]NetworkInterface{
		{1, InterfaceRSSCapable, 1e9, netip.MustParseAddrPort("192.0.2.1:445")},
		{2, InterfaceRDMACapable, 1e10, netip.MustParseAddrPort("[2001:db8::1]:0")},
	}},
	&NetworkInterfaceInfo{},
	&ResumeKey{1, 2, 3, 23: 4},
	&CopychunkRequest{ResumeKey{5, 6}, []Copychunk{{1, 2, 3}, {4, 5, 6}}},
	&CopychunkResponse{1, 2, 3},
}

// encode puts a header before m, and the payload that codecs leave to others
// behind it.
func encode(h Header, m message) []byte {
	b := m.Append(h.Append(nil))
	switch m := m.(type) {
	case *ReadResponse:
		b = append(b, m.Data...)
	case *WriteRequest:
		b = append(b, m.Data...)
	}
	return b
}

// decode decodes a message of m's type.
func decode(m message, b []byte) (message, error) {
	got := reflect.New(reflect.TypeOf(m).Elem()).Interface().(message)
	r := byteio.NewReader(b)
	r.Skip(HeaderSize)
	err := got.Decode(&r)
	return got, err
}

func TestRoundTrip(t *testing.T) {
	for _, m := range samples {
		got, err := decode(m, encode(Header{}, m))
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%T: got %+v, %v; want %+v", m, got, err, m)
		}
	}
}

// lengthDecides says whether a part of m can be a whole of another kind.
func lengthDecides(m message) bool {
	switch m.(type) {
	case *Lease, *QueryMaximalAccessRequest, *NetworkInterfaceInfo:
		return true
	}
	return false
}

// What is cut off is either missed or was padding.
func TestTruncated(t *testing.T) {
	for _, m := range samples {
		b := encode(Header{}, m)
		for n := range len(b) {
			got, err := decode(m, b[:n:n])
			var malformed *MalformedError
			switch {
			case err == nil:
				if !lengthDecides(m) && !reflect.DeepEqual(got, m) {
					t.Errorf("%T, %d of %d bytes: got %+v, want %+v or an error", m, n, len(b), got, m)
				}
			case !errors.As(err, &malformed) || malformed.Message == "":
				t.Errorf("%T, %d of %d bytes: error %q, want a MalformedError", m, n, len(b), err)
			case !lengthDecides(m) && !errors.Is(err, byteio.ErrShort):
				t.Errorf("%T, %d of %d bytes: error %q, want ErrShort", m, n, len(b), err)
			}
		}
	}
}

// Empty variable parts are one byte long where a server wants to see it.
func TestEmptyBuffers(t *testing.T) {
	for m, want := range map[message]int{
		&SessionSetupRequest{}:   25,
		&TreeConnectRequest{}:    9,
		&CreateRequest{}:         57,
		&IoctlRequest{}:          57,
		&QueryDirectoryRequest{}: 33,
		&QueryInfoRequest{}:      41,
		&SetInfoRequest{}:        33,
		&ReadRequest{}:           49,
		&ErrorResponse{}:         9,
	} {
		b := encode(Header{}, m)
		if got := len(b) - HeaderSize; got != want {
			t.Errorf("%T: %d bytes, want %d", m, got, want)
		}
		if got, err := decode(m, b); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%T: got %+v, %v; want %+v", m, got, err, m)
		}
	}
}

// Offsets count from the header even if other messages come before it.
func TestAppendBehindOtherMessages(t *testing.T) {
	before := bytes.Repeat([]byte{0xEE}, 13)
	for _, m := range samples {
		want := m.Append(make([]byte, HeaderSize))
		got := m.Append(append(bytes.Clone(before), make([]byte, HeaderSize)...))
		if !bytes.Equal(got[len(before):], want) {
			t.Errorf("%T: got  %x\nwant %x", m, got[len(before):], want)
		}
	}
}

func TestLies(t *testing.T) {
	for _, c := range []struct {
		m     message
		off   int // in the body
		value []byte
		field string
	}{
		{&EchoResponse{}, 0, []byte{5, 0}, "StructureSize"},
		{&NegotiateRequest{Dialects: []Dialect{SMB210}}, 2, []byte{0, 0}, "DialectCount"},
		{&NegotiateRequest{Dialects: []Dialect{SMB210}}, 2, []byte{0xFF, 0xFF}, ""},
		{&NegotiateResponse{SecurityBuffer: token}, 56, []byte{127, 0}, "SecurityBuffer"},
		{&NegotiateResponse{Dialect: SMB311}, 6, []byte{1, 0}, "NegotiateContextList"},
		{&SessionSetupResponse{SecurityBuffer: token}, 4, []byte{0xFF, 0xFF}, "SecurityBuffer"},
		{&TreeConnectRequest{Path: "abc"}, 6, []byte{5, 0}, "Path"},
		{&CreateRequest{Name: "abc"}, 46, []byte{8, 0}, "Name"},
		{&CreateRequest{Name: "abc"}, 52, []byte{1, 0, 0, 0x80}, "CreateContexts"},
		{&CreateResponse{Contexts: []CreateContext{{Name: "abcd"}, {Name: "efgh"}}}, 88, []byte{4, 0, 0, 0}, "CreateContexts"},
		{&CreateResponse{Contexts: []CreateContext{{Name: "abcd"}, {Name: "efgh"}}}, 88, []byte{0, 1, 0, 0}, "CreateContexts"},
		{&CreateResponse{Contexts: []CreateContext{{Name: "abcd"}}}, 94, []byte{0xFF}, "CreateContexts"},
		{&ReadResponse{DataLength: 21, Data: token}, 2, []byte{79}, "DataOffset"},
		{&ReadResponse{DataLength: 21, Data: token}, 4, []byte{0xFF, 0xFF, 0xFF, 0xFF}, "Data"},
		{&WriteRequest{Length: 21, Data: token}, 2, []byte{111}, "DataOffset"},
		{&WriteRequest{Length: 21, Data: token}, 4, []byte{22}, "Data"},
		{&LockRequest{Locks: []LockElement{{}}}, 2, []byte{0}, "LockCount"},
		{&IoctlRequest{Input: token}, 24, []byte{0xFF, 0xFF, 0xFF, 0xFF}, "Input"},
		{&IoctlResponse{Output: token}, 36, []byte{0xFF, 0xFF, 0xFF, 0x7F}, "Output"},
		{&QueryInfoResponse{token}, 2, []byte{64, 0}, "OutputBuffer"},
		{&ErrorResponse{Contexts: []ErrorContext{{1, token}}}, 8, []byte{22}, "ErrorData"},
		{&NetworkInterfaceInfo{[]NetworkInterface{{}, {}}}, 0, []byte{16}, "Next"},
		{&SymlinkErrorResponse{1, link}, 8, []byte{3, 0, 0, 0xA0}, "tag"},
		{&Lease{V2: true}, 52, []byte{0}, "DataLength"},
	} {
		b := encode(Header{}, c.m)
		b = append(b, make([]byte, max(0, HeaderSize+c.off+len(c.value)-len(b)))...)
		copy(b[HeaderSize+c.off:], c.value)
		_, err := decode(c.m, b)
		var malformed *MalformedError
		if !errors.As(err, &malformed) || malformed.Field != c.field {
			t.Errorf("%T with %x at %d: error %v, want one about %q", c.m, c.value, c.off, err, c.field)
		}
	}
}

func TestNegotiateContextsThatContradict(t *testing.T) {
	once := NegotiateContexts{Ciphers: []uint16{CipherAES128GCM}}
	b := (&NegotiateResponse{Dialect: SMB311, Contexts: once}).Append(make([]byte, HeaderSize))
	count := HeaderSize + 6
	b, _ = once.append(b, 0)
	b[count] = 2
	if _, err := decode(&NegotiateResponse{}, b); !errors.Is(err, errTwice) {
		t.Errorf("one context twice: error %v, want %v", err, errTwice)
	}

	two := NegotiateContexts{Ciphers: []uint16{CipherAES128GCM, CipherAES128CCM}}
	b = (&NegotiateResponse{Dialect: SMB311, Contexts: two}).Append(make([]byte, HeaderSize))
	if _, err := decode(&NegotiateResponse{}, b); !errors.Is(err, errAmbiguous) {
		t.Errorf("two ciphers chosen: error %v, want %v", err, errAmbiguous)
	}
}

// Contexts that nobody here knows, such as compression, are passed over.
func TestNegotiateContextsUnknown(t *testing.T) {
	known := NegotiateContexts{Ciphers: []uint16{CipherAES128GCM}}
	b := (&NegotiateResponse{Dialect: SMB311}).Append(make([]byte, HeaderSize))
	for _, kind := range []uint16{3, 7, 0x100, 0xFFFF} {
		b = append(appendContextHeader(b, 0, kind, len(token)), token...)
	}
	b, _ = known.append(b, 0)
	b[HeaderSize+6] = 5
	got, err := decode(&NegotiateResponse{}, b)
	if err != nil || !reflect.DeepEqual(got.(*NegotiateResponse).Contexts, known) {
		t.Errorf("got %+v, %v; want %+v", got, err, known)
	}
}

func TestFindContext(t *testing.T) {
	list := []CreateContext{{Name: ContextQFid}, NewCreateContext(ContextMxAc, &QueryMaximalAccessResponse{MaximalAccess: 7})}
	r, ok := FindContext(list, ContextMxAc)
	var m QueryMaximalAccessResponse
	if err := m.Decode(&r); !ok || err != nil || m.MaximalAccess != 7 {
		t.Errorf("MxAc: got %+v, %v, %v; want MaximalAccess 7", m, ok, err)
	}
	if _, ok := FindContext(list, ContextRqLs); ok {
		t.Error("RqLs found, want none")
	}
	if c := NewCreateContext(ContextQFid, nil); c.Data != nil {
		t.Errorf("QFid: data %x, want none", c.Data)
	}
}

func TestErrorDetail(t *testing.T) {
	data := byteio.Append32(nil, 4096)
	for _, m := range []ErrorResponse{{Data: data}, {Contexts: []ErrorContext{{ErrorIDDefault, data}}}} {
		if got, ok := m.RequiredLength(); got != 4096 || !ok {
			t.Errorf("%+v: RequiredLength = %d, %v; want 4096", m, got, ok)
		}
	}
	if _, ok := (&ErrorResponse{}).RequiredLength(); ok {
		t.Error("no data: RequiredLength is known, want not")
	}
	want := SymlinkErrorResponse{10, link}
	m := ErrorResponse{Contexts: []ErrorContext{{ErrorIDDefault, want.Append(nil)}}}
	if got, err := m.Symlink(); err != nil || got != want {
		t.Errorf("Symlink = %+v, %v; want %+v", got, err, want)
	}
	if _, err := (&ErrorResponse{}).Symlink(); !errors.Is(err, byteio.ErrShort) {
		t.Errorf("no data: Symlink error %v, want ErrShort", err)
	}
}

func TestIsLeaseBreak(t *testing.T) {
	for m, want := range map[message]bool{
		&OplockBreak{}: false, &LeaseBreakNotification{}: true, &LeaseBreak{}: true,
	} {
		if got := IsLeaseBreak(encode(Header{}, m)); got != want {
			t.Errorf("IsLeaseBreak(%T) = %v, want %v", m, got, want)
		}
	}
}

func TestHotPathAllocates(t *testing.T) {
	buf := make([]byte, 0, 256)
	h := Header{Command: CommandRead, MessageID: 5}
	readRequest, readResponse := ReadRequest{Length: 1 << 20}, ReadResponse{DataLength: uint32(len(token))}
	writeRequest, writeResponse := WriteRequest{Length: uint32(len(token))}, WriteResponse{Count: 1 << 20}
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, f := range map[string]func(){
		"Header": func() {
			r := byteio.NewReader(h.Append(buf))
			check(h.Decode(&r))
		},
		"ReadRequest": func() {
			r := byteio.NewReader(readRequest.Append(h.Append(buf)))
			check(h.Decode(&r))
			check(readRequest.Decode(&r))
		},
		"ReadResponse": func() {
			r := byteio.NewReader(append(readResponse.Append(h.Append(buf)), token...))
			check(h.Decode(&r))
			check(readResponse.Decode(&r))
		},
		"ReadResponse, head": func() {
			r := byteio.NewReader(readResponse.Append(h.Append(buf)))
			check(h.Decode(&r))
			check(readResponse.DecodeHead(&r))
		},
		"WriteRequest": func() {
			r := byteio.NewReader(append(writeRequest.Append(h.Append(buf)), token...))
			check(h.Decode(&r))
			check(writeRequest.Decode(&r))
		},
		"WriteResponse": func() {
			r := byteio.NewReader(writeResponse.Append(h.Append(buf)))
			check(h.Decode(&r))
			check(writeResponse.Decode(&r))
		},
		"TransformHeader": func() {
			th := TransformHeader{Flags: TransformEncrypted}
			r := byteio.NewReader(th.Append(buf))
			check(th.Decode(&r))
		},
		"Next": func() {
			_, rest, err := Next(h.Append(PutNextCommand(h.Append(buf), 0)))
			check(err)
			_, _, err = Next(rest)
			check(err)
		},
	} {
		if got := testing.AllocsPerRun(100, f); got > 0 {
			t.Errorf("%s: %v allocations, want none", name, got)
		}
	}
}
