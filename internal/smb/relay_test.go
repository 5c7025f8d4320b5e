package smb

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func dialTCP(t *testing.T, addr string) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return nc
}

// relay is somebody between a client and a server, who reads every frame and may
// change it in place: up the requests, down the replies, each with its number on
// the connection. Nil changes nothing.
type relay struct{ up, down func(n int, frame []byte) }

// listen returns the address under which the relay plays the server at target.
func (r relay) listen(t *testing.T, target string) string {
	t.Helper()
	l := listen(t)
	var bg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); l.Close(); bg.Wait() })
	bg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			closeBoth := func() { client.Close(); server.Close() }
			context.AfterFunc(ctx, closeBoth)
			bg.Go(func() { pump(server, client, r.up); closeBoth() })
			bg.Go(func() { pump(client, server, r.down); closeBoth() })
		}
	})
	return l.Addr().String()
}

func pump(to io.Writer, from io.Reader, change func(n int, frame []byte)) {
	for n := 0; ; n++ {
		var prefix [4]byte
		if _, err := io.ReadFull(from, prefix[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(prefix[:]))
		if _, err := io.ReadFull(from, frame); err != nil {
			return
		}
		if change != nil {
			change(n, frame)
		}
		if _, err := to.Write(append(prefix[:], frame...)); err != nil {
			return
		}
	}
}
