package smbconn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/byteio"
	"github.com/pagewire/pagewire/internal/netsim"
	"github.com/pagewire/pagewire/internal/smb/ntstatus"
	"github.com/pagewire/pagewire/internal/smb/smb2msg"
)

// peer is a server that says what the test tells it to.
type peer struct {
	t  *testing.T
	nc net.Conn
}

// frame reads the next frame.
func (p *peer) frame() []byte {
	p.t.Helper()
	var prefix [4]byte
	if _, err := io.ReadFull(p.nc, prefix[:]); err != nil {
		p.t.Fatalf("next request: %v", err)
	}
	b := make([]byte, binary.BigEndian.Uint32(prefix[:]))
	if _, err := io.ReadFull(p.nc, b); err != nil {
		p.t.Fatalf("next request: %v", err)
	}
	return b
}

// header is what a request starts with.
func header(t *testing.T, b []byte) smb2msg.Header {
	t.Helper()
	var h smb2msg.Header
	r := byteio.NewReader(b)
	if err := h.Decode(&r); err != nil {
		t.Fatalf("next request: %v", err)
	}
	return h
}

// next reads the next frame, which holds one request.
func (p *peer) next() (smb2msg.Header, []byte) {
	p.t.Helper()
	b := p.frame()
	return header(p.t, b), b
}

// expect reads the next request, which must be a cmd.
func (p *peer) expect(cmd smb2msg.Command) smb2msg.Header {
	p.t.Helper()
	h, _ := p.next()
	if h.Command != cmd {
		p.t.Fatalf("got a %v, want a %v", h.Command, cmd)
	}
	return h
}

// message is a reply to h.
func message(h smb2msg.Header, status ntstatus.Status, credits uint16, body Body) []byte {
	h.Flags = h.Flags&smb2msg.FlagAsync | smb2msg.FlagServerToRedir
	h.Status, h.Credits = status, credits
	return body.Append(h.Append(nil))
}

// send sends one frame, written in pieces.
func (p *peer) send(pieces ...[]byte) {
	n := 0
	for _, b := range pieces {
		n += len(b)
	}
	p.nc.Write(binary.BigEndian.AppendUint32(nil, uint32(n)))
	for _, b := range pieces {
		p.nc.Write(b)
	}
}

func (p *peer) reply(h smb2msg.Header, status ntstatus.Status, credits uint16, body Body) {
	p.send(message(h, status, credits, body))
}

// data is a READ reply with payload.
func data(h smb2msg.Header, payload []byte) [][]byte {
	return [][]byte{message(h, ntstatus.Success, 16, &smb2msg.ReadResponse{DataLength: uint32(len(payload))}), payload}
}

// connect negotiates 2.1 over an in-memory link and grants credits.
func connect(t *testing.T, credits uint16, cfg Config) (*Conn, *peer) {
	t.Helper()
	return connectOver(t, netsim.New(netsim.Config{}), credits, cfg)
}

func connectOver(t *testing.T, link *netsim.Link, credits uint16, cfg Config) (*Conn, *peer) {
	t.Helper()
	client, server := link.Pipe()
	p := &peer{t, server}
	cfg.Dialects = []smb2msg.Dialect{smb2msg.SMB210}
	go func() {
		h := p.expect(smb2msg.CommandNegotiate)
		p.reply(h, ntstatus.Success, credits, &smb2msg.NegotiateResponse{
			Dialect: smb2msg.SMB210, Capabilities: smb2msg.CapLargeMTU,
			MaxReadSize: 1 << 20, MaxWriteSize: 1 << 20, MaxTransactSize: 1 << 20,
		})
	}()
	c, err := New(t.Context(), client, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); server.Close() })
	return c, p
}

// readCall asks for all that into takes.
func readCall(into ...[]byte) *Call {
	n := int(total(into))
	return &Call{Command: smb2msg.CommandRead, Body: &smb2msg.ReadRequest{Length: uint32(n)}, Into: into, Charge: Charge(n)}
}

// start runs Do and returns what will tell its result.
func start(ctx context.Context, c *Conn, calls ...*Call) <-chan error {
	done := make(chan error, 1)
	go func() { done <- c.Do(ctx, calls...) }()
	synctest.Wait()
	return done
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)*7 + seed
	}
	return b
}

func TestReadIsScatteredOverItsBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connect(t, 64, Config{})
		want := pattern(100_000, 1)
		got := make([]byte, len(want))
		call := readCall(got[:1], got[1:4000], nil, got[4000:70_000], got[70_000:])
		done := start(t.Context(), c, call)
		p.send(data(p.expect(smb2msg.CommandRead), want)...)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if call.N != len(want) || !bytes.Equal(got, want) {
			t.Errorf("%d bytes, equal %v; want %d equal ones", call.N, bytes.Equal(got, want), len(want))
		}
	})
}

func TestCancelledReadGivesItsBuffersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connect(t, 2, Config{})
		payload := pattern(65_536, 1)
		buf := make([]byte, len(payload))
		ctx, cancel := context.WithCancel(t.Context())
		done := start(ctx, c, readCall(buf))
		h := p.expect(smb2msg.CommandRead)
		if got := c.Credits(); got != 2 {
			t.Errorf("%d credits with one out, want 2", got)
		}
		reply := bytes.Join(data(h, payload), nil)
		p.nc.Write(binary.BigEndian.AppendUint32(nil, uint32(len(reply))))
		p.nc.Write(reply[:30_000]) // the cancellation comes in mid-payload
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled read: %v, want %v", err, context.Canceled)
		}
		canary := pattern(len(buf), 99)
		copy(buf, canary)
		if got := p.expect(smb2msg.CommandCancel); got.MessageID != h.MessageID {
			t.Errorf("CANCEL of message %d, want %d", got.MessageID, h.MessageID)
		}
		p.nc.Write(reply[30_000:])
		synctest.Wait()
		if !bytes.Equal(buf, canary) {
			t.Error("the buffer was written to after the read returned")
		}
		if got := c.Credits(); got != 1+16 {
			t.Errorf("%d credits after the late answer, want 17", got)
		}
		// The connection goes on where it was.
		done = start(t.Context(), c, &Call{Command: smb2msg.CommandEcho, Body: &smb2msg.EchoRequest{}})
		p.reply(p.expect(smb2msg.CommandEcho), ntstatus.Success, 1, &smb2msg.EchoResponse{})
		if err := <-done; err != nil {
			t.Errorf("the next call: %v", err)
		}
	})
}

func TestLateIsToldOfRepliesNobodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connect(t, 8, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		late := make(chan *Call, 1)
		call := &Call{Command: smb2msg.CommandCreate, Body: &smb2msg.CreateRequest{Name: "f"}, Late: func(c *Call) { late <- c }}
		done := start(ctx, c, call)
		h := p.expect(smb2msg.CommandCreate)
		cancel()
		<-done
		p.expect(smb2msg.CommandCancel)
		p.reply(h, ntstatus.Success, 1, &smb2msg.CreateResponse{FileID: smb2msg.FileID{Persistent: 7}})
		if got := <-late; got != call || got.Header.Status != ntstatus.Success {
			t.Errorf("Late was told of %p with %v, want %p with success", got, got.Header.Status, call)
		}
	})
}

func TestBreaksAreHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := make(chan []byte, 1)
		_, p := connect(t, 1, Config{Break: func(b []byte) { heard <- bytes.Clone(b) }})
		h := smb2msg.Header{Command: smb2msg.CommandOplockBreak, MessageID: unsolicited}
		want := message(h, ntstatus.Success, 0, &smb2msg.LeaseBreakNotification{NewEpoch: 7})
		p.send(want)
		if got := <-heard; !bytes.Equal(got, want) {
			t.Errorf("heard of %x, want %x", got, want)
		}
	})
}

func TestInterimReplyBringsCreditsAndTheAsyncID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connect(t, 1, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		done := start(ctx, c, &Call{Command: smb2msg.CommandChangeNotify, Body: &smb2msg.ChangeNotifyRequest{}})
		h := p.expect(smb2msg.CommandChangeNotify)
		interim := h
		interim.Flags, interim.AsyncID = smb2msg.FlagAsync, 4711
		p.reply(interim, ntstatus.Pending, 3, &smb2msg.ErrorResponse{})
		synctest.Wait()
		if got := c.Credits(); got != 3 {
			t.Errorf("%d credits after the interim reply, want 3", got)
		}
		// With the first call still waiting, the credits are there for a second.
		second := start(t.Context(), c, &Call{Command: smb2msg.CommandEcho, Body: &smb2msg.EchoRequest{}})
		p.reply(p.expect(smb2msg.CommandEcho), ntstatus.Success, 1, &smb2msg.EchoResponse{})
		if err := <-second; err != nil {
			t.Errorf("second call: %v", err)
		}
		cancel()
		<-done
		if got := p.expect(smb2msg.CommandCancel); got.AsyncID != 4711 || got.MessageID != h.MessageID {
			t.Errorf("CANCEL of async %d, message %d; want 4711, %d", got.AsyncID, got.MessageID, h.MessageID)
		}
		final := interim
		p.reply(final, ntstatus.Cancelled, 0, &smb2msg.ErrorResponse{})
		synctest.Wait()
		if got := c.Credits(); got != 3 {
			t.Errorf("%d credits after the final reply, want 3: its charge was settled before", got)
		}
	})
}

func TestLargeRequestOnOneCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connect(t, 1, Config{})
		m := &smb2msg.ReadRequest{Length: 1 << 20}
		call := &Call{Command: smb2msg.CommandRead, Body: m, Into: [][]byte{make([]byte, 1<<20)}, Charge: 16}
		done := make(chan error, 1)
		go func() {
			done <- c.DoUpTo(t.Context(), call, func(charge int) { m.Length = uint32(charge * CreditUnit) })
		}()
		h, b := p.next()
		r := byteio.NewReader(b)
		r.Skip(smb2msg.HeaderSize)
		var got smb2msg.ReadRequest
		if err := got.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if h.CreditCharge != 1 || got.Length != CreditUnit {
			t.Errorf("charge %d, length %d; want 1, %d", h.CreditCharge, got.Length, CreditUnit)
		}
		p.send(data(h, pattern(CreditUnit, 3))...)
		if err := <-done; err != nil || call.N != CreditUnit {
			t.Errorf("%d bytes, %v; want %d", call.N, err, CreditUnit)
		}
	})
}

// TestHostileReplies sends what no server should. Each ends the connection with
// an error that says why, and no byte of it counts as data.
func TestHostileReplies(t *testing.T) {
	const want = 1000
	ok := func(h smb2msg.Header) []byte { return bytes.Join(data(h, pattern(want, 1)), nil) }
	for name, c := range map[string]struct {
		reply func(h smb2msg.Header) []byte
		err   error
	}{
		"garbage":                {func(smb2msg.Header) []byte { return pattern(200, 5) }, ErrProtocol},
		"compressed":             {func(h smb2msg.Header) []byte { return append([]byte{0xFC}, ok(h)[1:]...) }, ErrProtocol},
		"sealed, without keys":   {func(h smb2msg.Header) []byte { return append([]byte{0xFD}, ok(h)[1:]...) }, ErrProtocol},
		"a request":              {func(h smb2msg.Header) []byte { b := ok(h); b[16] = 0; return b }, ErrProtocol},
		"shorter than a header":  {func(h smb2msg.Header) []byte { return ok(h)[:60] }, ErrProtocol},
		"no body":                {func(h smb2msg.Header) []byte { return ok(h)[:64] }, nil},
		"another message's":      {func(h smb2msg.Header) []byte { h.MessageID += 5; return ok(h) }, ErrProtocol},
		"another command's":      {func(h smb2msg.Header) []byte { h.Command = smb2msg.CommandWrite; return ok(h) }, ErrProtocol},
		"an unasked-for message": {func(h smb2msg.Header) []byte { h.MessageID = unsolicited; return ok(h) }, ErrProtocol},
		"more than was asked for": {func(h smb2msg.Header) []byte {
			return bytes.Join(data(h, pattern(want+1, 1)), nil)
		}, ErrProtocol},
		"a length beyond the frame": {func(h smb2msg.Header) []byte { b := ok(h); b[68]++; return b }, ErrProtocol},
		"data inside the header":    {func(h smb2msg.Header) []byte { b := ok(h); b[66] = 10; return b }, ErrProtocol},
		"a next command off by one": {func(h smb2msg.Header) []byte { b := ok(h); b[20] = 81; return b }, ErrProtocol},
		"a next command at itself":  {func(h smb2msg.Header) []byte { b := ok(h); b[20] = 8; return b }, ErrProtocol},
		"a next command far away":   {func(h smb2msg.Header) []byte { b := ok(h); b[23] = 0x70; return b }, ErrProtocol},
		"more than the request paid for": {func(h smb2msg.Header) []byte {
			return append(ok(h), make([]byte, CreditUnit+64<<10)...)
		}, ErrProtocol},
		"a large interim reply": {func(h smb2msg.Header) []byte {
			h.Flags = smb2msg.FlagAsync
			return append(message(h, ntstatus.Pending, 1, &smb2msg.ErrorResponse{}), make([]byte, 64<<10)...)
		}, ErrProtocol},
		"twice": {func(h smb2msg.Header) []byte { return ok(h) }, ErrProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				conn, p := connect(t, 64, Config{})
				call := readCall(make([]byte, want))
				done := start(t.Context(), conn, call)
				h := p.expect(smb2msg.CommandRead)
				b := c.reply(h)
				p.send(b)
				if name == "twice" {
					if err := <-done; err != nil || call.N != want {
						t.Fatalf("the first of two: %d bytes, %v", call.N, err)
					}
					p.send(b)
					<-conn.Done()
					if err := conn.Err(); !errors.Is(err, c.err) {
						t.Errorf("replayed reply: %v, want %v", err, c.err)
					}
					return
				}
				err := <-done
				if c.err == nil { // a reply all right, but its decoder will complain
					if err != nil || call.N != 0 {
						t.Errorf("%d bytes, %v; want none and no error", call.N, err)
					}
					return
				}
				if !errors.Is(err, c.err) || !errors.Is(err, ErrDisconnected) {
					t.Errorf("%v; want %v and %v", err, c.err, ErrDisconnected)
				}
				if err := conn.Do(t.Context(), readCall(make([]byte, 1))); !errors.Is(err, ErrDisconnected) {
					t.Errorf("the next call: %v, want %v", err, ErrDisconnected)
				}
			})
		})
	}
}

// TestInterimReplyOfAnotherCommand is about the call that it leaves waiting,
// while the other one of the compound gets the error.
func TestInterimReplyOfAnotherCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connect(t, 64, Config{})
		create := &Call{Command: smb2msg.CommandCreate, Body: &smb2msg.CreateRequest{Name: "f"}}
		done := start(t.Context(), c, create, readCall(make([]byte, 10)))
		h := header(t, p.frame())
		h.MessageID++
		h.Flags, h.Command, h.NextCommand = smb2msg.FlagAsync, smb2msg.CommandWrite, 0
		p.reply(h, ntstatus.Pending, 1, &smb2msg.ErrorResponse{})
		if err := <-done; !errors.Is(err, ErrProtocol) {
			t.Errorf("%v, want %v", err, ErrProtocol)
		}
		c.Close()
	})
}

// TestSlowServer sends one reply for longer than a server may be silent, while
// another request waits.
func TestSlowServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := netsim.New(netsim.Config{Down: 1_000_000})
		c, p := connectOver(t, link, 64, Config{Timeout: 4 * time.Second})
		want := pattern(1<<20, 1)
		got := make([]byte, len(want))
		first := start(t.Context(), c, readCall(got))
		h := p.expect(smb2msg.CommandRead)
		second := start(t.Context(), c, readCall(make([]byte, 10)))
		h2 := p.expect(smb2msg.CommandRead)
		go io.Copy(io.Discard, p.nc)
		p.send(data(h, want)...)
		p.send(data(h2, want[:10])...)
		if err := <-first; err != nil || !bytes.Equal(got, want) {
			t.Errorf("first: %v, equal %v", err, bytes.Equal(got, want))
		}
		if err := <-second; err != nil {
			t.Errorf("second: %v", err)
		}
	})
}

func TestFailedWriteCountsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connect(t, 64, Config{})
		done := start(t.Context(), c, &Call{Command: smb2msg.CommandWrite, Body: &smb2msg.WriteRequest{Length: 10}, Out: [][]byte{make([]byte, 10)}})
		p.reply(p.expect(smb2msg.CommandWrite), ntstatus.DiskFull, 1, &smb2msg.ErrorResponse{})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if st := c.Stats(); st.Written != 0 || st.MaxWrite != 0 {
			t.Errorf("%d bytes written, at most %d at a time; want none", st.Written, st.MaxWrite)
		}
	})
}

func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := connect(t, 8, Config{Timeout: 40 * time.Second})
		begin := time.Now()
		done := start(t.Context(), c, readCall(make([]byte, 10)))
		h := p.expect(smb2msg.CommandRead)
		// It answers the question whether it lives, so the call goes on waiting.
		p.reply(p.expect(smb2msg.CommandEcho), ntstatus.Success, 1, &smb2msg.EchoResponse{})
		if waited := time.Since(begin); waited < 20*time.Second || waited > 30*time.Second {
			t.Errorf("asked after %v, want half of 40 s", waited)
		}
		// Then it answers no more.
		err := <-done
		if !errors.Is(err, ErrTimeout) {
			t.Errorf("%v, want %v", err, ErrTimeout)
		}
		if waited := time.Since(begin); waited < 60*time.Second || waited > 80*time.Second {
			t.Errorf("gave up after %v, want 40 s after the last sign of life", waited)
		}
		_ = h
	})
}

// TestServerThatStopsInMidReply is silent when no other call waits.
func TestServerThatStopsInMidReply(t *testing.T) {
	for _, part := range []int{readHead, readHead + 5000} {
		synctest.Test(t, func(t *testing.T) {
			c, p := connect(t, 8, Config{Timeout: 40 * time.Second})
			begin := time.Now()
			done := start(t.Context(), c, readCall(make([]byte, 10_000)))
			reply := bytes.Join(data(p.expect(smb2msg.CommandRead), pattern(10_000, 1)), nil)
			p.nc.Write(binary.BigEndian.AppendUint32(nil, uint32(len(reply))))
			p.nc.Write(reply[:part])
			select {
			case err := <-done:
				if waited := time.Since(begin); !errors.Is(err, ErrTimeout) || waited < 40*time.Second || waited > 60*time.Second {
					t.Errorf("%v after %v, want %v after 40 s", err, waited, ErrTimeout)
				}
			case <-time.After(time.Hour):
				t.Error("the call hangs")
			}
		})
	}
}

// TestReplyThatNeverComes is about a server that lives, for it answers whether it
// does, but has lost a request. One that is pending may take as long as it likes.
func TestReplyThatNeverComes(t *testing.T) {
	for _, pending := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, p := connect(t, 8, Config{Timeout: 40 * time.Second})
			begin := time.Now()
			done := start(t.Context(), c, readCall(make([]byte, 10)))
			read := p.expect(smb2msg.CommandRead)
			if pending {
				interim := read
				interim.Flags, interim.AsyncID = smb2msg.FlagAsync, 4711
				p.reply(interim, ntstatus.Pending, 1, &smb2msg.ErrorResponse{})
			}
			go func() {
				for {
					var prefix [4]byte
					if _, err := io.ReadFull(p.nc, prefix[:]); err != nil {
						return
					}
					b := make([]byte, binary.BigEndian.Uint32(prefix[:]))
					io.ReadFull(p.nc, b)
					p.reply(header(t, b), ntstatus.Success, 1, &smb2msg.EchoResponse{})
				}
			}()
			select {
			case err := <-done:
				if waited := time.Since(begin); pending || !errors.Is(err, ErrTimeout) || waited < 80*time.Second || waited > 120*time.Second {
					t.Errorf("%v after %v, want %v after 80 s", err, waited, ErrTimeout)
				}
			case <-time.After(time.Hour):
				if !pending {
					t.Error("the call hangs")
				}
			}
		})
	}
}

// TestQueueOfReplies is about a server whose replies wait for a slow link, for
// longer than a reply may be lost.
func TestQueueOfReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := netsim.New(netsim.Config{Down: 1_000_000})
		c, p := connectOver(t, link, 500, Config{Timeout: 4 * time.Second})
		var calls []<-chan error
		var heads []smb2msg.Header
		for range 20 { // eight seconds each
			calls = append(calls, start(t.Context(), c, readCall(make([]byte, 1<<20))))
			heads = append(heads, p.expect(smb2msg.CommandRead))
		}
		go func() {
			for _, h := range heads {
				p.send(data(h, make([]byte, 1<<20))...)
			}
			for {
				var prefix [4]byte
				if _, err := io.ReadFull(p.nc, prefix[:]); err != nil {
					return
				}
				b := make([]byte, binary.BigEndian.Uint32(prefix[:]))
				io.ReadFull(p.nc, b)
				p.reply(header(t, b), ntstatus.Success, 1, &smb2msg.EchoResponse{})
			}
		}()
		for i, done := range calls {
			if err := <-done; err != nil {
				t.Errorf("call %d: %v", i, err)
			}
		}
	})
}

func TestServerThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link := netsim.New(netsim.Config{})
		c, _ := connectOver(t, link, 512, Config{Timeout: 10 * time.Second})
		link.Blackhole(netsim.Up)
		// The write blocks in the socket; even cancelled, it must not return
		// while its buffer is in use, and it must return.
		ctx, cancel := context.WithCancel(t.Context())
		done := start(ctx, c, &Call{
			Command: smb2msg.CommandWrite, Charge: 16, Out: [][]byte{make([]byte, 1<<20)},
			Body: &smb2msg.WriteRequest{Length: 1 << 20},
		})
		cancel()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("the write returned (%v) with its frame half sent", err)
		default:
		}
		if err := <-done; !errors.Is(err, ErrTimeout) {
			t.Errorf("%v, want %v", err, ErrTimeout)
		}
	})
}

// FuzzReader lets a hostile server say anything after the negotiation, sealed or
// not.
func FuzzReader(f *testing.F) {
	h := smb2msg.Header{Command: smb2msg.CommandRead, MessageID: 1}
	for _, seal := range []bool{false, true} {
		if seal {
			h.SessionID = sessionID
		}
		f.Add(bytes.Join(data(h, pattern(100, 1)), nil), seal)
		f.Add(message(h, ntstatus.EndOfFile, 1, &smb2msg.ErrorResponse{}), seal)
		pending := h
		pending.Flags = smb2msg.FlagAsync
		f.Add(message(pending, ntstatus.Pending, 1, &smb2msg.ErrorResponse{}), seal)
	}
	f.Fuzz(func(t *testing.T, b []byte, seal bool) {
		client, server := net.Pipe()
		c := newConn(client, Config{})
		c.Negotiated = Negotiated{Dialect: smb2msg.SMB210, MaxRead: 1 << 16, MaxWrite: 1 << 16, MaxTransact: 1 << 16}
		c.largest.Store(1 << 16)
		c.credits.next = 1
		if seal {
			k := newKeys(t)
			k.client.Seal = true
			c.Secure(k.client)
			b = k.seal(b)
		}
		c.start()
		defer c.Close()
		defer server.Close()
		canary := pattern(64, 9)
		buf := append(make([]byte, 100), canary...)
		call := readCall(buf[:100:100])
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Do(ctx, call) }()
		(&peer{t, server}).frame()
		go io.Copy(io.Discard, server)
		frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
		server.Write(frame)
		cancel()
		<-done
		if !bytes.Equal(buf[100:], canary) {
			t.Error("bytes beyond the buffer were written")
		}
	})
}
