package bench

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pagewire/pagewire/internal/sambatest"
)

const (
	ours      = "pagewire"
	smbclient = "smbclient"
	parallel  = "go-smb2, 8 in flight"
	ioCopy    = "go-smb2, io.Copy"
	workers   = "go-smb2, 16 workers"
	goSMB2    = "go-smb2"
)

// client is a program to measure.
type client struct {
	name string
	// command returns the arguments that do w's work, nil if that is not for
	// this client.
	command func(e endpoint, w workload) []string
	// check looks at the path that a run took by what the client says of itself;
	// nil: it says nothing.
	check func(w workload, m run) error
}

// endpoint is where a server is reached.
type endpoint struct {
	*sambatest.Server
	addr string
}

// url names a file in the share.
func (e endpoint) url(name string) string {
	u := url.URL{Scheme: "smb", User: url.User(e.User), Host: e.addr, Path: "/" + e.Share + "/" + name}
	return u.String()
}

// local names a file in memory.
func (b *bench) local(name string) string { return filepath.Join(b.dir, name) }

// source returns what the case reads.
func (w workload) source() string {
	switch {
	case w.link == "witness":
		return witnessName
	case w.op == "list":
		return listName
	case w.op == "upload" || w.op == "download":
		return treeName
	case w.op == "cached":
		return keptName
	case w.link == "20ms" || w.calls == "small":
		return farName
	}
	return bigName
}

// clients lists whom to measure, ours first.
func clients(b *bench) []client {
	return append([]client{
		{name: ours, command: func(e endpoint, w workload) []string {
			src := w.source()
			switch w.op {
			case "read":
				return []string{b.Self, "cp", e.url(src), os.DevNull}
			case "write":
				return []string{b.Self, "cp", b.local(src), e.url(writtenName)}
			case "upload":
				return []string{b.Self, "cp", "-r", b.local(src), e.url(writtenName)}
			case "download":
				return []string{b.Self, "cp", "-r", e.url(src), b.local(writtenName)}
			case "list":
				return []string{b.Self, "ls", e.url(src)}
			}
			return nil
		}},
		{name: smbclient, command: func(e endpoint, w workload) []string {
			host, port, _ := net.SplitHostPort(e.addr)
			protection := map[string]string{"plain": "off", "signed": "sign", "sealed": "encrypt"}[w.protection]
			do := map[string]string{
				"read":  fmt.Sprintf("get %s %s", w.source(), os.DevNull),
				"write": fmt.Sprintf("put %s %s", b.local(w.source()), writtenName),
				"list":  fmt.Sprintf("cd %s; ls", w.source()),
			}[w.op]
			if do == "" {
				return nil
			}
			return []string{"smbclient", "--configfile=" + e.Conf, "--port=" + port, "--user=" + e.User,
				"--client-protection=" + protection, "//" + host + "/" + e.Share, "--command=" + do}
		}},
		{name: parallel, command: b.drive(8, "read", "write")},
		{name: ioCopy, command: b.drive(0, "read", "write")},
		{name: workers, command: b.drive(16, "upload", "download")},
		{name: goSMB2, command: b.drive(0, "list")},
	}, streamers(b)...)
}

// drive returns the commands of the driver for some operations.
func (b *bench) drive(inFlight int, ops ...string) func(endpoint, workload) []string {
	return func(e endpoint, w workload) []string {
		if w.link == "20ms" || !slices.Contains(ops, w.op) {
			return nil
		}
		args := []string{b.driver, "-addr", e.addr, "-share", e.Share, "-user", e.User,
			"-parallel", fmt.Sprint(inFlight), w.op}
		switch w.op {
		case "write", "upload":
			return append(args, b.local(w.source()), writtenName)
		case "download":
			return append(args, w.source(), b.local(writtenName))
		}
		return append(args, w.source())
	}
}

// environ is that of every client.
func (e endpoint) environ() []string {
	return append(os.Environ(), "PASSWD="+e.Password, "USER="+e.User)
}

// buildDriver builds the program that drives go-smb2 from its sources in the
// clone that the working directory is in, and returns its path.
func buildDriver(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/pagewire/pagewire").Output()
	if err != nil {
		return "", fmt.Errorf("needs Go and a clone of pagewire to run in, to build the peer: %w", err)
	}
	program := filepath.Join(dir, "peers")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	cmd.Dir = filepath.Join(strings.TrimSpace(string(out)), "internal", "bench", "peers")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the peer: %w\n%s", err, out)
	}
	return program, nil
}

// missing returns what the machine lacks.
func missing() string {
	if why := sambatest.Missing(); why != "" {
		return why
	}
	for _, program := range []string{"smbclient", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed"
		}
	}
	return ""
}
