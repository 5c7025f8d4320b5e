package main

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
)

// recorder relays connections to a server and keeps what both sides say.
//
// It runs a goroutine that accepts and two for each connection; close joins
// them.
type recorder struct {
	port   int
	listen net.Listener
	server string
	wg     sync.WaitGroup

	mu    sync.Mutex
	conns []*conversation // guarded by mu
	open  []net.Conn      // guarded by mu
}

// conversation is one connection's frames, without their length prefix, in an
// order in which a reply never precedes its request.
type conversation struct {
	mu     sync.Mutex
	frames []frame // guarded by mu until the recorder is closed
}

type frame struct {
	reply bool // from the server
	data  []byte
}

func newRecorder(server string) (*recorder, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &recorder{port: l.Addr().(*net.TCPAddr).Port, listen: l, server: server}
	r.wg.Add(1)
	go r.accept()
	return r, nil
}

func (r *recorder) accept() {
	defer r.wg.Done()
	for {
		client, err := r.listen.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.server)
		if err != nil {
			client.Close()
			continue
		}
		c := &conversation{}
		r.mu.Lock()
		r.conns = append(r.conns, c)
		r.open = append(r.open, client, server)
		r.mu.Unlock()
		r.wg.Add(2)
		go r.relay(c, server, client, false)
		go r.relay(c, client, server, true)
	}
}

// relay moves whole frames, each behind its four-byte length, and ends the
// connection when one side does.
func (r *recorder) relay(c *conversation, to, from net.Conn, reply bool) {
	defer r.wg.Done()
	defer to.Close()
	defer from.Close()
	for {
		buf := make([]byte, 4)
		if _, err := io.ReadFull(from, buf); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint32(buf) & 0xffffff)
		buf = append(buf, make([]byte, n)...)
		if _, err := io.ReadFull(from, buf[4:]); err != nil {
			return
		}
		c.mu.Lock()
		c.frames = append(c.frames, frame{reply, buf[4:]})
		c.mu.Unlock()
		if _, err := to.Write(buf); err != nil {
			return
		}
	}
}

// close ends the relay and returns what it recorded.
func (r *recorder) close() []*conversation {
	r.listen.Close()
	r.mu.Lock()
	for _, c := range r.open {
		c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
	return r.conns
}
