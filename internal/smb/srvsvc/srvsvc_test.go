package srvsvc

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/pagewire/pagewire/internal/byteio"
)

// golden reads testdata/golden, which smbclient and smbd spoke.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/golden/" + name + ".hex")
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		p, err := hex.DecodeString(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, p...)
	}
	return b
}

// many reads testdata/many.txt, which testdata/capture.sh made.
func many(t testing.TB) (client, server [][]byte) {
	t.Helper()
	text, err := os.ReadFile("testdata/many.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		p, err := hex.DecodeString(strings.TrimSpace(line[2:]))
		if err != nil {
			t.Fatal(err)
		}
		if line[0] == 'C' {
			client = append(client, p)
		} else {
			server = append(server, p)
		}
	}
	return client, server
}

func assemble(t testing.TB, p []byte) *Message {
	t.Helper()
	var a Assembler
	m, err := a.Add(p)
	if err != nil || m == nil {
		t.Fatalf("%x makes message %v, %v", p, m, err)
	}
	return m
}

func TestBind(t *testing.T) {
	if got, want := AppendBind(nil, 1), golden(t, "bind"); !bytes.Equal(got, want) {
		t.Errorf("bind = %x, want smbclient's %x", got, want)
	}
	ack := golden(t, "bind_ack")
	if n, err := DecodeBindAck(assemble(t, ack), 1); n != 4280 || err != nil {
		t.Errorf("smbd's bind_ack: %d, %v; want 4280", n, err)
	}
	if _, err := DecodeBindAck(assemble(t, ack), 2); err == nil {
		t.Error("a bind_ack to another call was taken")
	}
	b, err := DecodeBind(assemble(t, golden(t, "bind")))
	if err != nil || b.MaxFragment != 4280 {
		t.Fatalf("smbclient's bind: %+v, %v", b, err)
	}
	const group = 20 // of associations, where smbd has a random number
	got := b.AppendBindAck(nil, 1)
	copy(got[group:], ack[group:group+4])
	if !bytes.Equal(got, ack) {
		t.Errorf("bind_ack = %x, want smbd's %x", got, ack)
	}
}

func TestBindRefused(t *testing.T) {
	for name, change := range map[string]struct{ at, to int }{
		"interface": {headerSize + 16, 0xFF},
		"encoding":  {headerSize + 36, 0xFF},
		"context":   {headerSize + 12, 1},
	} {
		p := AppendBind(nil, 1)
		p[change.at] = byte(change.to)
		b, err := DecodeBind(assemble(t, p))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeBindAck(assemble(t, b.AppendBindAck(nil, 1)), 1); err == nil {
			t.Errorf("another %s was accepted", name)
		}
	}
	nak := (&Message{Type: TypeBindNak, Call: 1, Body: make([]byte, 8)}).Append(nil, MaxFragment)
	if _, err := DecodeBindAck(assemble(t, nak), 1); err == nil {
		t.Error("a bind_nak was accepted")
	}
}

// Windows offers three contexts: ours, the same in NDR64, and features.
func TestBindOfWindows(t *testing.T) {
	ndr64 := syntax{[16]byte{0x33, 0x05, 0x71, 0x71, 0xBA, 0xBE, 0x37, 0x49, 0x83, 0x19, 0xB5, 0xDB, 0xEF, 0x9C, 0xCC, 0x36}, 1}
	body := []byte{0xD0, 0x16, 0xD0, 0x16, 0, 0, 0, 0, 3, 0, 0, 0}
	for i, encoding := range []syntax{encodingNDR, ndr64, {}} {
		body = append(body, byte(i), 0, 1, 0)
		body = interfaceSRVS.Append(body)
		body = encoding.Append(body)
	}
	b, err := DecodeBind(&Message{Type: TypeBind, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	want := []outcome{{0, 0}, {2, 2}, {2, 2}}
	if !reflect.DeepEqual(b.contexts, want) || b.MaxFragment != 5840 {
		t.Errorf("contexts %v, fragments of %d; want %v, 5840", b.contexts, b.MaxFragment, want)
	}
}

func TestShareEnumRequest(t *testing.T) {
	want := golden(t, "request_op15")
	if got := AppendShareEnum(nil, 2, "127.0.0.1", 0); !bytes.Equal(got, want) {
		t.Errorf("request = %x, want smbclient's %x", got, want)
	}
	m := assemble(t, want)
	if m.Type != TypeRequest || m.Call != 2 || m.Opnum != OpShareEnum {
		t.Errorf("smbclient's request: %+v", m)
	}
	var req ShareEnumRequest
	r := byteio.NewReader(m.Body)
	if err := req.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if want := (ShareEnumRequest{"127.0.0.1", 1, 0xFFFFFFFF, 0}); req != want {
		t.Errorf("smbclient's request is %+v, want %+v", req, want)
	}
}

func TestShareEnumResponse(t *testing.T) {
	p := golden(t, "response")
	m := assemble(t, p)
	shares, resume, more, err := DecodeShareEnum(m, 2)
	if err != nil || more || resume != 0 {
		t.Fatalf("resume %d, more %v, %v", resume, more, err)
	}
	if len(shares) < 2 || shares[0] != (Share{"share", ShareDisk, ""}) {
		t.Errorf("shares %+v; want share first", shares)
	}
	ipc := shares[len(shares)-1]
	if ipc.Name != "IPC$" || ipc.Type&ShareMask != ShareIPC || !strings.HasPrefix(ipc.Comment, "IPC Service") {
		t.Errorf("the last share is %+v; want IPC$", ipc)
	}
	again(t, m, p)
	if _, _, _, err := DecodeShareEnum(m, 3); err == nil {
		t.Error("an answer to another call was taken")
	}
}

// again encodes what m decodes to, which has to give the same bytes.
func again(t *testing.T, m *Message, want []byte) {
	t.Helper()
	var resp ShareEnumResponse
	r := byteio.NewReader(m.Body)
	if err := resp.Decode(&r); err != nil {
		t.Fatal(err)
	}
	got := (&Message{Type: TypeResponse, Call: m.Call, Body: resp.Append(nil)}).Append(nil, MaxFragment)
	if !bytes.Equal(got, want) {
		t.Errorf("answer comes back as %x, want smbd's %x", got, want)
	}
}

// TestFragments takes in an answer of three fragments, however it is cut.
func TestFragments(t *testing.T) {
	client, server := many(t)
	if len(client) != 2 || len(server) != 4 {
		t.Fatalf("%d and %d messages, want 2 and 4", len(client), len(server))
	}
	answer := bytes.Join(server[1:], nil)
	for _, cut := range []int{len(answer), 4280, 1024, 17, 1} {
		var a Assembler
		var m *Message
		for p := answer; len(p) > 0; {
			n := min(cut, len(p))
			var err error
			if m, err = a.Add(p[:n]); err != nil {
				t.Fatal(err)
			}
			if p = p[n:]; m != nil != (len(p) == 0) {
				t.Fatalf("a message with %d bytes to come", len(p))
			}
		}
		shares, _, _, err := DecodeShareEnum(m, 2)
		if err != nil || len(shares) != 151 {
			t.Fatalf("%d shares, want 151; %v", len(shares), err)
		}
		seen := map[string]string{}
		for _, s := range shares {
			seen[s.Name] = s.Comment
		}
		for i := range 150 {
			name, want := fmt.Sprintf("share%d", i+1), fmt.Sprintf("número %d 🗄", i+1)
			if seen[name] != want {
				t.Errorf("comment of %s = %q, want %q", name, seen[name], want)
			}
		}
		again(t, m, answer)
	}
}

func TestAssemblerRefuses(t *testing.T) {
	first := (&Message{Type: TypeResponse, Call: 7, Body: make([]byte, 100)}).Append(nil, 64)
	first = first[:64]
	for name, p := range map[string][]byte{
		"version 4":            {4, 0, 2, 3, 16, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0},
		"big endian":           {5, 0, 2, 3, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0},
		"no length":            {5, 0, 2, 3, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"shorter than a call":  {5, 0, 2, 3, 16, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0},
		"authentication":       {5, 0, 12, 3, 16, 0, 0, 0, 16, 0, 16, 0, 0, 0, 0, 0},
		"a middle first":       {5, 0, 12, 0, 16, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0},
		"a first in mid":       append(bytes.Clone(first), first...),
		"another call in mid":  append(bytes.Clone(first), 5, 0, 2, 2, 16, 0, 0, 0, 24, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		"another type in mid":  append(bytes.Clone(first), 5, 0, 0, 2, 16, 0, 0, 0, 24, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
		"more behind the last": append(AppendBind(nil, 1), 5),
	} {
		var a Assembler
		if m, err := a.Add(p); err == nil {
			t.Errorf("%s: message %v", name, m)
		}
	}
}

func TestAssemblerBound(t *testing.T) {
	var a Assembler
	big := make([]byte, 60000)
	p := (&Message{Type: TypeResponse, Body: append(big, 0)}).Append(nil, len(big)+callSize)[:len(big)+callSize]
	n := 0
	for ; n < 1000; n++ {
		if _, err := a.Add(p); err != nil {
			if !errors.Is(err, errTooLong) {
				t.Fatal(err)
			}
			break
		}
		p[3] = 0 // no longer the first
	}
	if n*len(big) > maxMessage {
		t.Errorf("%d bytes were taken, want at most %d", n*len(big), maxMessage)
	}
}

func TestFault(t *testing.T) {
	p := (&Message{Type: TypeFault, Call: 2, Status: FaultOpRange}).Append(nil, MaxFragment)
	m := assemble(t, p)
	if m.Type != TypeFault || m.Status != FaultOpRange || m.Call != 2 || len(p) != 32 {
		t.Errorf("fault of %d bytes: %+v", len(p), m)
	}
	if _, _, _, err := DecodeShareEnum(m, 2); err == nil || !strings.Contains(err.Error(), "0x1c010002") {
		t.Errorf("a fault is %v; want its status", err)
	}
}

func TestStatus(t *testing.T) {
	answer := func(resp ShareEnumResponse) *Message {
		return &Message{Type: TypeResponse, Call: 2, Body: resp.Append(nil)}
	}
	share := []Share{{Name: "a"}}
	shares, resume, more, err := DecodeShareEnum(answer(ShareEnumResponse{Level: 1, Shares: share, Total: 3, Resume: 1, Status: ErrorMoreData}), 2)
	if err != nil || !more || resume != 1 || !reflect.DeepEqual(shares, share) {
		t.Errorf("more data: %v, %d, %v, %v", shares, resume, more, err)
	}
	for _, resp := range []ShareEnumResponse{
		{Level: 1, Resume: 1, Status: ErrorMoreData},
		{Level: 1, Shares: share, Status: ErrorMoreData},
		{Level: 2, Status: ErrorInvalidLevel},
	} {
		if _, _, _, err := DecodeShareEnum(answer(resp), 2); err == nil {
			t.Errorf("%+v is no error", resp)
		}
	}
	_, _, _, err = DecodeShareEnum(answer(ShareEnumResponse{Level: 1, Status: ErrorAccessDenied}), 2)
	if !errors.Is(err, fs.ErrPermission) || !errors.Is(err, ErrorAccessDenied) {
		t.Errorf("access denied is %v", err)
	}
}

// TestTruncations cuts what decodes at every byte. No prefix decodes.
func TestTruncations(t *testing.T) {
	decode := map[string]func([]byte) error{
		"bind": func(b []byte) error { _, err := DecodeBind(&Message{Type: TypeBind, Body: b}); return err },
		"bind_ack": func(b []byte) error {
			_, err := DecodeBindAck(&Message{Type: TypeBindAck, Body: b}, 0)
			return err
		},
		"request_op15": func(b []byte) error { r := byteio.NewReader(b); return new(ShareEnumRequest).Decode(&r) },
		"response":     func(b []byte) error { r := byteio.NewReader(b); return new(ShareEnumResponse).Decode(&r) },
	}
	for name, decode := range decode {
		body := assemble(t, golden(t, name)).Body
		if err := decode(body); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		enough := len(body)
		if name == "bind_ack" {
			enough -= 20 // the encoding accepted, which can only be ours
		}
		for n := range enough {
			if decode(body[:n]) == nil {
				t.Errorf("%s cut to %d bytes decodes", name, n)
			}
		}
	}
}

func FuzzAssembler(f *testing.F) {
	for _, name := range []string{"bind", "bind_ack", "request_op15", "response"} {
		f.Add(golden(f, name), uint16(10))
	}
	_, server := many(f)
	f.Add(bytes.Join(server[1:], nil), uint16(4280))
	f.Fuzz(func(t *testing.T, in []byte, cut uint16) {
		var whole, parts Assembler
		m1, err1 := whole.Add(in)
		n := min(int(cut), len(in))
		m2, err2 := parts.Add(in[:n])
		if m2 != nil || err2 != nil {
			return // ended by the first part alone
		}
		if m2, err2 = parts.Add(in[n:]); !reflect.DeepEqual(m1, m2) || (err1 == nil) != (err2 == nil) {
			t.Errorf("whole: %+v, %v; in parts: %+v, %v", m1, err1, m2, err2)
		}
	})
}

func FuzzBind(f *testing.F) {
	f.Add(assemble(f, golden(f, "bind")).Body)
	f.Fuzz(func(t *testing.T, in []byte) {
		b, err := DecodeBind(&Message{Type: TypeBind, Body: in})
		if err != nil {
			return
		}
		var a Assembler
		if m, err := a.Add(b.AppendBindAck(nil, 3)); err != nil || m == nil || m.Type != TypeBindAck {
			t.Errorf("the answer to %x is %+v, %v", in, m, err)
		}
	})
}

func FuzzBindAck(f *testing.F) {
	f.Add(assemble(f, golden(f, "bind_ack")).Body)
	f.Fuzz(func(t *testing.T, in []byte) {
		if n, err := DecodeBindAck(&Message{Type: TypeBindAck, Body: in}, 0); err != nil && n != 0 {
			t.Errorf("fragments of %d with %v", n, err)
		}
	})
}

func FuzzShareEnumRequest(f *testing.F) {
	f.Add(assemble(f, golden(f, "request_op15")).Body)
	f.Fuzz(func(t *testing.T, in []byte) {
		var a, b ShareEnumRequest
		if r := byteio.NewReader(in); a.Decode(&r) != nil {
			return
		}
		r := byteio.NewReader(a.Append(nil))
		if err := b.Decode(&r); err != nil || a != b {
			t.Errorf("%+v comes back as %+v, %v", a, b, err)
		}
	})
}

func FuzzShareEnumResponse(f *testing.F) {
	f.Add(assemble(f, golden(f, "response")).Body)
	f.Fuzz(func(t *testing.T, in []byte) {
		var a, b ShareEnumResponse
		if r := byteio.NewReader(in); a.Decode(&r) != nil {
			return
		}
		r := byteio.NewReader(a.Append(nil))
		err := b.Decode(&r)
		if len(a.Shares) == 0 {
			a.Shares = b.Shares // nil or not
		}
		if err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%+v comes back as %+v, %v", a, b, err)
		}
	})
}
