package main

import (
	"bytes"
	"encoding/hex"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNames gives every recorded request its name again.
func TestNames(t *testing.T) {
	const folder = "../smb2msg/testdata/golden"
	paths, err := filepath.Glob(filepath.Join(folder, "*_request*.hex"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden requests in %s: %v", folder, err)
	}
	for _, path := range paths {
		if strings.Contains(path, "_response_") { // to a request for a resume key
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, digits, _ := strings.Cut(string(text), "\n") // after the comment
		b, err := hex.DecodeString(strings.ReplaceAll(digits, "\n", ""))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		g := golden{}
		g.addConversation(&conversation{frames: []frame{{data: b}}}, "# client", "# server")
		if name := filepath.Base(path); g[smb2Folder+name] == "" {
			t.Errorf("%s is not named so any more", name)
		}
	}
}

// TestRecorder relays to a server that answers each frame by itself.
func TestRecorder(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			io.Copy(c, c)
			c.Close()
		}
	}()
	r, err := newRecorder(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	c, err := net.Dial("tcp", r.listen.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, s := range []string{"\x00\x00\x00\x05hello", "\x00\x00\x00\x00", "\x00\x00\x00\x03you"} {
		if _, err := c.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(s))
		if _, err := io.ReadFull(c, got); err != nil || string(got) != s {
			t.Fatalf("relayed %q, %v; want %q", got, err, s)
		}
	}
	conns := r.close()
	if len(conns) != 1 {
		t.Fatalf("%d conversations, want 1", len(conns))
	}
	var said bytes.Buffer
	for _, f := range conns[0].frames {
		if f.reply {
			said.WriteString("<")
		} else {
			said.WriteString(">")
		}
		said.Write(f.data)
	}
	if got, want := said.String(), ">hello<hello><>you<you"; got != want {
		t.Errorf("recorded %q, want %q", got, want)
	}
}
