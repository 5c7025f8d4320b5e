package sambatest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
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
		return !slices.ContainsFunc(s.processes(), process.serves)
	}
	if err := poll(ctx, s.exited, idle); err != nil {
		return nil, fmt.Errorf("samba: waiting for connections to end: %w", err)
	}
	out, err := exec.Command(find("smbstatus"), confFlag+s.Conf, "--profile").Output()
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
