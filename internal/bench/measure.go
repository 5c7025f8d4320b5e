package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/pagewire/pagewire/internal/sambatest"
)

// run is one run of one client.
type run struct {
	Op         string  `json:"op"`
	Protection string  `json:"protection"`
	Server     string  `json:"server"`
	Link       string  `json:"link"`
	Calls      string  `json:"calls,omitempty"`
	Client     string  `json:"client"`
	Round      int     `json:"round"`
	Bytes      int64   `json:"bytes"`
	Files      int     `json:"files,omitempty"`
	Seconds    float64 `json:"seconds"`
	CPU        float64 `json:"cpu_seconds"` // the client's, user and system
	Requests   int64   `json:"requests"`    // that moved the bytes, as smbd counted
	All        int64   `json:"all_requests"`
	Flushes    int64   `json:"flushes"`
	// Entries is how many bytes a listing's replies had.
	Entries int64 `json:"entry_bytes,omitempty"`
	// Stream is what the client says of itself, if it does.
	Stream *Streamed `json:"stream,omitempty"`
}

func (m run) write(w io.Writer) error {
	if w == nil {
		return nil
	}
	return json.NewEncoder(w).Encode(m)
}

// measure runs a client once and holds what it did against the server's
// counters and the files that are there afterwards.
func (b *bench) measure(ctx context.Context, e endpoint, w workload, c client, size int64) (run, error) {
	m := run{Op: w.op, Protection: w.protection, Server: w.setting, Link: w.link, Calls: w.calls, Client: c.name, Bytes: size}
	if w.trees() {
		m.Files = b.Files
	}
	// Everybody writes into fresh memory.
	target := filepath.Join(e.Dir, writtenName)
	if w.op == "download" {
		target = filepath.Join(b.dir, writtenName)
	}
	if err := os.RemoveAll(target); err != nil {
		return m, err
	}
	before, err := e.Profile(ctx)
	if err != nil {
		return m, err
	}

	args := c.command(e, w)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = e.environ()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err = cmd.Run()
	m.Seconds = time.Since(start).Seconds()
	if err != nil {
		return m, fmt.Errorf("%w\n%s%s", err, tail(stdout.Bytes()), tail(stderr.Bytes()))
	}
	m.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()

	after, err := e.Profile(ctx)
	if err != nil {
		return m, err
	}
	m.count(after.Since(before))
	if err := m.assert(after.Since(before)); err != nil {
		return m, err
	}
	if c.check != nil {
		if err := m.streamed(w, c, stdout.Bytes()); err != nil {
			return m, err
		}
	}
	switch w.op {
	case "write", "stream-write":
		if m.Stream != nil {
			err = wroteStream(target, size, w.callSize())
			break
		}
		err = sameFile(target, filepath.Join(b.dir, w.source()))
	case "upload", "download":
		err = holds(target, b.Files, size)
	case "list":
		if n := bytes.Count(stdout.Bytes(), []byte("file-")); n != b.Files {
			err = fmt.Errorf("listed %d files, not %d", n, b.Files)
		}
	}
	return m, err
}

// tail returns the end of what a program has printed.
func tail(out []byte) []byte { return out[max(0, len(out)-1000):] }

// reads reports whether it is READs that move the bytes, and writes whether it is
// WRITEs.
func reads(op string) bool {
	return op == "read" || op == "download" || op == "stream-read" || op == "cached"
}

func writes(op string) bool { return op == "write" || op == "upload" || op == "stream-write" }

func (m *run) count(c sambatest.Counters) {
	m.All, m.Flushes = c["request_count"], c["smb2_flush_count"]
	switch {
	case reads(m.Op):
		m.Requests = c["smb2_read_count"]
	case writes(m.Op):
		m.Requests = c["smb2_write_count"]
	case m.Op == "list":
		m.Requests = c["smb2_create_count"] + c["smb2_find_count"] + c["smb2_close_count"] + c["smb2_getinfo_count"]
		m.Entries = c["smb2_find_outbytes"]
	}
}

// assert holds the bytes that smbd counted against those that were asked for.
// Its counters include the messages' headers.
func (m *run) assert(c sambatest.Counters) error {
	const readHeader, writeHeader = 64 + 16, 64 + 48
	moved, header := c["smb2_read_outbytes"], int64(readHeader)
	switch {
	case writes(m.Op):
		moved, header = c["smb2_write_inbytes"], writeHeader
	case m.Op == "list":
		return nil
	}
	if moved < m.Bytes || moved > m.Bytes+m.Requests*header {
		return fmt.Errorf("smbd counted %d bytes in %d requests, not %d and headers", moved, m.Requests, m.Bytes)
	}
	if c["connect_count"] != 1 {
		return fmt.Errorf("smbd counted %d connections, not one", c["connect_count"])
	}
	if m.Op == "stream-write" && m.Flushes != 0 { // nobody waits for a disk here
		return fmt.Errorf("smbd counted %d flushes, not none as for everybody else", m.Flushes)
	}
	return nil
}

// sameFile compares the size of two files and samples of what is in them.
func sameFile(name, original string) error {
	var files [2]*os.File
	var sizes [2]int64
	for i, name := range []string{name, original} {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		files[i], sizes[i] = f, info.Size()
	}
	if sizes[0] != sizes[1] {
		return fmt.Errorf("%s has %d bytes, not %d", name, sizes[0], sizes[1])
	}
	const samples, length = 257, 64
	for i := range int64(samples) {
		off := max(0, (sizes[0]-length)*i/(samples-1))
		var data [2][length]byte
		for j, f := range files {
			if _, err := f.ReadAt(data[j][:], off); err != nil && err != io.EOF {
				return err
			}
		}
		if data[0] != data[1] {
			return fmt.Errorf("%s has other bytes than it should at %d", name, off)
		}
	}
	return nil
}

// holds wants a tree to have so many files with so many bytes in all.
func holds(tree string, files int, size int64) error {
	var n int
	var total int64
	err := filepath.WalkDir(tree, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		n++
		total += info.Size()
		return nil
	})
	if err != nil {
		return err
	}
	if n != files || total != size {
		return errors.New(fmt.Sprint(tree, " has ", n, " files with ", total, " bytes, not ", files, " with ", size))
	}
	return nil
}
