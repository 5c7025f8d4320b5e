package sambatest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Counters are smbd's own statistics by name, such as "smb2_read_count",
// "smb2_read_outbytes", "smb2_write_inbytes" and "connect_count".
type Counters map[string]int64

// Since returns how far the counters have come since old.
func (c Counters) Since(old Counters) Counters {
	d := make(Counters, len(c))
	for name, n := range c {
		d[name] = n - old[name]
	}
	return d
}

// Profile returns the counters of all connections there have been. It waits
// until the last of them has ended, for only then are its counters complete:
// smbd publishes those of a living connection about once a second.
func (s *Server) Profile(ctx context.Context) (Counters, error) {
	idle := func() bool {
		for _, p := range group(s.cmd.Process.Pid) {
			if p.pid != s.cmd.Process.Pid && p.serves() {
				return false
			}
		}
		return true
	}
	if err := poll(ctx, s.exited, idle); err != nil {
		return nil, fmt.Errorf("samba: waiting for connections to end: %w", err)
	}
	out, err := exec.Command(find("smbstatus"), "--configfile="+s.Conf, "--profile").Output()
	if err != nil {
		return nil, fmt.Errorf("samba: smbstatus: %w", err)
	}
	return parseProfile(out), nil
}

// parseProfile reads lines of "name:  number" and skips the headings.
func parseProfile(out []byte) Counters {
	c := Counters{}
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		name, value, _ := strings.Cut(sc.Text(), ":")
		if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil {
			c[name] = n
		}
	}
	return c
}

// process is a living process of smbd's group.
type process struct {
	pid  int
	name string
}

// serves reports whether the process was forked for a connection. The others
// have a name of their own, such as smbd-notifyd.
func (p process) serves() bool { return p.name == "smbd" || strings.HasPrefix(p.name, "smbd[") }

// group lists the processes of a group that have not ended.
func group(id int) []process {
	var ps []process
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		// See proc(5): "pid (name) state ppid pgrp ...", with anything in the name.
		pid, rest, _ := strings.Cut(string(b), " (")
		end := strings.LastIndex(rest, ") ")
		if end < 0 {
			continue
		}
		fields := strings.Fields(rest[end+2:])
		if len(fields) < 3 || fields[2] != strconv.Itoa(id) || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		n, err := strconv.Atoi(pid)
		if err != nil {
			continue
		}
		ps = append(ps, process{n, rest[:end]})
	}
	return ps
}
