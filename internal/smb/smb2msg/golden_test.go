package smb2msg

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/internal/byteio"
)

// readGolden reads a line that says who sent it and lines of hex.
func readGolden(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, digits, _ := strings.Cut(string(text), "\n")
	b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return b
}

func goldenFiles(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "golden", pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Errorf("no golden file %s", pattern)
	}
	return files
}

// Foreign messages survive decoding and appending byte by byte.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		pattern string
		m       message
	}{
		{"negotiate_request*", &NegotiateRequest{}},
		{"negotiate_response*", &NegotiateResponse{}},
		{"session_setup_request*", &SessionSetupRequest{}},
		{"session_setup_response*", &SessionSetupResponse{}},
		{"logoff_request*", &LogoffRequest{}},
		{"logoff_response*", &LogoffResponse{}},
		{"tree_connect_request*", &TreeConnectRequest{}},
		{"tree_connect_response*", &TreeConnectResponse{}},
		{"tree_disconnect_request*", &TreeDisconnectRequest{}},
		{"tree_disconnect_response*", &TreeDisconnectResponse{}},
		{"create_request*", &CreateRequest{}},
		{"create_response*", &CreateResponse{}},
		{"close_request*", &CloseRequest{}},
		{"close_response*", &CloseResponse{}},
		{"flush_request*", &FlushRequest{}},
		{"flush_response*", &FlushResponse{}},
		{"read_request*", &ReadRequest{}},
		{"read_response*", &ReadResponse{}},
		{"write_request*", &WriteRequest{}},
		{"write_response*", &WriteResponse{}},
		{"lock_request*", &LockRequest{}},
		{"lock_response*", &LockResponse{}},
		{"ioctl_request*", &IoctlRequest{}},
		{"ioctl_response*", &IoctlResponse{}},
		{"cancel_request*", &CancelRequest{}},
		{"echo_request*", &EchoRequest{}},
		{"echo_response*", &EchoResponse{}},
		{"query_directory_request*", &QueryDirectoryRequest{}},
		{"query_directory_response*", &QueryDirectoryResponse{}},
		{"change_notify_request*", &ChangeNotifyRequest{}},
		{"change_notify_response*", &ChangeNotifyResponse{}},
		{"query_info_request*", &QueryInfoRequest{}},
		{"query_info_response*", &QueryInfoResponse{}},
		{"set_info_request*", &SetInfoRequest{}},
		{"set_info_response*", &SetInfoResponse{}},
		{"oplock_break_notification.hex", &OplockBreak{}},
		{"oplock_break_notification_lease.hex", &LeaseBreakNotification{}},
		{"oplock_break_notification_lease2.hex", &LeaseBreakNotification{}},
		{"oplock_break_request.hex", &OplockBreak{}},
		{"oplock_break_request_lease.hex", &LeaseBreak{}},
		{"oplock_break_response.hex", &OplockBreak{}},
		{"oplock_break_response_lease.hex", &LeaseBreak{}},
		{"error_response*", &ErrorResponse{}},
	} {
		for _, path := range goldenFiles(t, c.pattern) {
			t.Run(filepath.Base(path), func(t *testing.T) {
				checkGolden(t, c.m, readGolden(t, path))
			})
		}
	}
}

func checkGolden(t *testing.T, m message, want []byte) {
	t.Helper()
	r := byteio.NewReader(want)
	var h Header
	if err := h.Decode(&r); err != nil {
		t.Fatal(err)
	}
	m, err := decode(m, want)
	if err != nil {
		t.Fatal(err)
	}
	got := encode(h, m)
	if !bytes.Equal(got, withoutNoise(m, want, len(got))) {
		t.Errorf("%+v\ngot  %x\nwant %x", m, got, want)
	}
	again, err := decode(m, got)
	if err != nil || !reflect.DeepEqual(again, m) {
		t.Errorf("again: got %+v, %v; want %+v", again, err, m)
	}
}

// withoutNoise clears what means nothing and what senders therefore choose as
// they like, until the message is n bytes long.
func withoutNoise(m message, b []byte, n int) []byte {
	b = bytes.Clone(b)
	body := b[HeaderSize:]
	// An offset of no bytes.
	empty := func(off, offSize, length int) {
		if bytes.Equal(body[length:length+4], make([]byte, 4)) {
			clear(body[off : off+offSize])
		}
	}
	switch m := m.(type) {
	case *IoctlRequest:
		empty(24, 4, 28)
		empty(36, 4, 40)
	case *QueryInfoResponse:
		empty(2, 2, 4)
	case *CreateRequest:
		const dataLength = "\x00\x00\x00\x00"
		b = bytes.ReplaceAll(b, []byte("\x18\x00"+dataLength+ContextMxAc), []byte("\x00\x00"+dataLength+ContextMxAc))
	case *ErrorResponse:
		// The byte that is there if there is no data.
		if m.Data == nil && m.Contexts == nil {
			body[8] = 0
		}
	}
	// The byte of an empty buffer, which some leave out, and padding.
	if len(b) == n-1 {
		b = append(b, 0)
	}
	for len(b) > n && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b
}

// TestGoldenLeaseBreak says what the server meant, as the test that made it send
// this tells: the fourth change of a lease that was asked for in epoch 0x4711.
func TestGoldenLeaseBreak(t *testing.T) {
	files := goldenFiles(t, "oplock_break_notification_lease2*")
	got, err := decode(&LeaseBreakNotification{}, readGolden(t, files[0]))
	if err != nil {
		t.Fatal(err)
	}
	m := got.(*LeaseBreakNotification)
	all := LeaseRead | LeaseWrite | LeaseHandle
	if m.NewEpoch != 0x4715 || m.Flags != LeaseBreakAckRequired || m.CurrentLeaseState != all || m.NewLeaseState != LeaseRead|LeaseHandle {
		t.Errorf("%+v", m)
	}
}

// Compounds fall apart into messages that make the same compound.
func TestGoldenCompounds(t *testing.T) {
	for _, path := range goldenFiles(t, "compound_*") {
		want := readGolden(t, path)
		var got []byte
		n := 0
		for rest := want; len(rest) > 0; n++ {
			m, next, err := Next(rest)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			start := len(got)
			got = append(got, m...)
			if next != nil {
				got = PutNextCommand(got, start)
			}
			rest = next
		}
		if n < 2 || !bytes.Equal(got, want) {
			t.Errorf("%s: %d messages\ngot  %x\nwant %x", path, n, got, want)
		}
	}
}

func TestGoldenTransform(t *testing.T) {
	for _, path := range goldenFiles(t, "transform_*") {
		want := readGolden(t, path)
		r := byteio.NewReader(want)
		var h TransformHeader
		if err := h.Decode(&r); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if ProtocolOf(want) != ProtocolTransform || int(h.OriginalMessageSize) != r.Len() {
			t.Errorf("%s: OriginalMessageSize %d, want %d", path, h.OriginalMessageSize, r.Len())
		}
		if got := append(h.Append(nil), r.Rest()...); !bytes.Equal(got, want) {
			t.Errorf("%s: got  %x\nwant %x", path, got, want)
		}
	}
}

// What messages carry survives, too.
func TestGoldenCarried(t *testing.T) {
	input := func(m message) []byte { return m.(*IoctlRequest).Input }
	output := func(m message) []byte { return m.(*IoctlResponse).Output }
	context := func(name string) func(message) []byte {
		return func(m message) []byte {
			var list []CreateContext
			switch m := m.(type) {
			case *CreateRequest:
				list = m.Contexts
			case *CreateResponse:
				list = m.Contexts
			}
			r, _ := FindContext(list, name)
			return r.Rest()
		}
	}
	for _, c := range []struct {
		file string
		in   message
		part func(message) []byte
		m    message
	}{
		{"ioctl_request_validate_negotiate_info", &IoctlRequest{}, input, &ValidateNegotiateInfoRequest{}},
		{"ioctl_response_validate_negotiate_info", &IoctlResponse{}, output, &ValidateNegotiateInfoResponse{}},
		{"ioctl_response_srv_request_resume_key", &IoctlResponse{}, output, new(ResumeKey)},
		{"ioctl_request_srv_copychunk", &IoctlRequest{}, input, &CopychunkRequest{}},
		{"ioctl_response_srv_copychunk", &IoctlResponse{}, output, &CopychunkResponse{}},
		{"ioctl_response_query_network_interface_info", &IoctlResponse{}, output, &NetworkInterfaceInfo{}},
		{"create_request_rqls", &CreateRequest{}, context(ContextRqLs), &Lease{}},
		{"create_request_rqls2", &CreateRequest{}, context(ContextRqLs), &Lease{}},
		{"create_request_dhnq", &CreateRequest{}, context(ContextDHnQ), &DurableHandleRequest{}},
		{"create_request_dhnc", &CreateRequest{}, context(ContextDHnC), &DurableHandleReconnect{}},
		{"create_request_dh2q", &CreateRequest{}, context(ContextDH2Q), &DurableHandleRequestV2{}},
		{"create_request_dh2c", &CreateRequest{}, context(ContextDH2C), &DurableHandleReconnectV2{}},
		{"create_request_alsi", &CreateRequest{}, context(ContextAlSi), &AllocationSize{}},
		{"create_response_rqls", &CreateResponse{}, context(ContextRqLs), &Lease{}},
		{"create_response_rqls2", &CreateResponse{}, context(ContextRqLs), &Lease{}},
		{"create_response_dhnq", &CreateResponse{}, context(ContextDHnQ), &DurableHandleResponse{}},
		{"create_response_dh2q", &CreateResponse{}, context(ContextDH2Q), &DurableHandleResponseV2{}},
		{"create_response_mxac", &CreateResponse{}, context(ContextMxAc), &QueryMaximalAccessResponse{}},
	} {
		in, err := decode(c.in, readGolden(t, filepath.Join("testdata", "golden", c.file+".hex")))
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		want := c.part(in)
		m, err := decode(c.m, append(make([]byte, HeaderSize), want...))
		if got := m.Append(nil); err != nil || !bytes.Equal(got, want) || len(want) == 0 {
			t.Errorf("%s: %+v, %v\ngot  %x\nwant %x", c.file, m, err, got, want)
		}
	}
}

// Every file is read by a test above.
func TestGoldenFilesAreKnown(t *testing.T) {
	known := fmt.Sprintf(" %s compound transform error ", strings.ToLower(strings.Join(commandNames[:], " ")))
	for _, path := range goldenFiles(t, "*") {
		name := filepath.Base(path)
		for _, kind := range []string{"_request", "_response", "_notification"} {
			name, _, _ = strings.Cut(name, kind)
		}
		if !strings.Contains(known, " "+name+" ") {
			t.Errorf("%s: no test reads it", path)
		}
	}
}
