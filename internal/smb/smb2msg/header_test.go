package smb2msg

import (
	"bytes"
	"errors"
	"testing"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
)

var headers = []Header{
	{3, ntstatus.Status(0xC0000022), CommandRead, 64, FlagServerToRedir | FlagSigned, 128, 1 << 40, 0, 5, 1 << 60, guid},
	{3, ntstatus.Status(0x103), CommandRead, 64, FlagServerToRedir | FlagAsync, 128, 1 << 40, 1 << 50, 0, 1 << 60, guid},
}

func TestHeaderRoundTrip(t *testing.T) {
	for _, h := range headers {
		b := h.Append(nil)
		if len(b) != HeaderSize {
			t.Fatalf("%d bytes, want %d", len(b), HeaderSize)
		}
		if !bytes.Equal(b[SignatureOffset:], h.Signature[:]) {
			t.Errorf("signature is not at %d: %x", SignatureOffset, b)
		}
		r := byteio.NewReader(b)
		var got Header
		if err := got.Decode(&r); err != nil || got != h {
			t.Errorf("got %+v, %v; want %+v", got, err, h)
		}
		for n := range len(b) {
			r := byteio.NewReader(b[:n])
			if err := new(Header).Decode(&r); !errors.Is(err, byteio.ErrShort) {
				t.Errorf("%d bytes: error %v, want ErrShort", n, err)
			}
		}
	}
}

func TestTransformHeaderRoundTrip(t *testing.T) {
	h := TransformHeader{guid, key, 1 << 20, TransformEncrypted, 1 << 60}
	b := h.Append(nil)
	if len(b) != TransformHeaderSize || !bytes.Equal(b[TransformAADOffset:][:16], key[:]) {
		t.Errorf("got %x, want %d bytes with the nonce at %d", b, TransformHeaderSize, TransformAADOffset)
	}
	r := byteio.NewReader(b)
	var got TransformHeader
	if err := got.Decode(&r); err != nil || got != h {
		t.Errorf("got %+v, %v; want %+v", got, err, h)
	}
	for n := range len(b) {
		r := byteio.NewReader(b[:n])
		if err := new(TransformHeader).Decode(&r); !errors.Is(err, byteio.ErrShort) {
			t.Errorf("%d bytes: error %v, want ErrShort", n, err)
		}
	}
	h.Flags = 2
	r = byteio.NewReader(h.Append(nil))
	if err := got.Decode(&r); err == nil {
		t.Error("flags of 2: no error, want one")
	}
}

func TestProtocolOf(t *testing.T) {
	for frame, want := range map[string]Protocol{
		"\xfeSMB@": ProtocolSMB2, "\xffSMBr": ProtocolSMB1, "\xfdSMB": ProtocolTransform, "\xfcSMB": ProtocolCompression,
		"\xfeSM": 0, "GET ": Protocol(0x20544547),
	} {
		if got := ProtocolOf([]byte(frame)); got != want {
			t.Errorf("ProtocolOf(%q) = %v, want %v", frame, got, want)
		}
	}
	b := (&Header{}).Append(nil)
	b[0] = 0xFC
	r := byteio.NewReader(b)
	var malformed *MalformedError
	if err := new(Header).Decode(&r); !errors.As(err, &malformed) || malformed.Field != "ProtocolId" {
		t.Errorf("compressed: error %v, want one about ProtocolId", err)
	}
}

func TestNext(t *testing.T) {
	var frame []byte
	parts := []message{&CreateRequest{Name: "a"}, &QueryInfoRequest{}, &CloseRequest{}}
	for i, m := range parts {
		start := len(frame)
		frame = m.Append((&Header{MessageID: uint64(i)}).Append(frame))
		if i < len(parts)-1 {
			frame = PutNextCommand(frame, start)
		}
	}
	n, whole := 0, len(frame)
	for rest := frame; len(rest) > 0; n++ {
		msg, next, err := Next(rest)
		if err != nil {
			t.Fatal(err)
		}
		r := byteio.NewReader(msg)
		var h Header
		if err := h.Decode(&r); err != nil || h.MessageID != uint64(n) {
			t.Errorf("message %d: header %+v, %v", n, h, err)
		}
		if got, err := decode(parts[n], msg); err != nil {
			t.Errorf("message %d: %+v, %v", n, got, err)
		}
		whole -= len(msg)
		rest = next
	}
	if n != len(parts) || whole != 0 {
		t.Errorf("%d messages with %d bytes left over, want %d with none", n, whole, len(parts))
	}

	for _, next := range []uint32{1, 56, 63, 68, 128, 1 << 31, 1<<32 - 8} {
		b := (&Header{NextCommand: next}).Append(nil)
		b = append(b, make([]byte, 64)...)
		if m, rest, err := Next(b); err == nil {
			t.Errorf("NextCommand %d of %d bytes: got %d and %d bytes, want an error", next, len(b), len(m), len(rest))
		}
	}
	for n := range HeaderSize {
		if _, _, err := Next(frame[:n]); !errors.Is(err, byteio.ErrShort) {
			t.Errorf("%d bytes: error %v, want ErrShort", n, err)
		}
	}
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		SMB202.String(): "2.0.2", SMB210.String(): "2.1", SMB300.String(): "3.0", SMB302.String(): "3.0.2", SMB311.String(): "3.1.1",
		CommandNegotiate.String(): "NEGOTIATE", CommandOplockBreak.String(): "OPLOCK_BREAK", Command(19).String(): "command 0x13",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
