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
}

// endpoint is where a server is reached.
type endpoint struct {
	*sambatest.Server
	addr string
}

// source returns what the case reads.
func (w workload) source() string {
	switch {
	case w.link == "witness":
		return witnessName
	case w.op == "list":
		return listName
	case w.op == "upload" || w.op == "download":
		return treeName
	case w.link == "20ms":
		return farName
	}
	return bigName
}

// clients lists whom to measure, ours first.
func clients(b *bench) []client {
	local := func(name string) string { return filepath.Join(b.dir, name) }
	return []client{
		{ours, func(e endpoint, w workload) []string {
			remote := func(name string) string {
				u := url.URL{Scheme: "smb", User: url.User(e.User), Host: e.addr, Path: "/" + e.Share + "/" + name}
				return u.String()
			}
			src := w.source()
			switch w.op {
			case "read":
				return []string{b.Self, "cp", remote(src), os.DevNull}
			case "write":
				return []string{b.Self, "cp", local(src), remote(writtenName)}
			case "upload":
				return []string{b.Self, "cp", "-r", local(src), remote(writtenName)}
			case "download":
				return []string{b.Self, "cp", "-r", remote(src), local(writtenName)}
			}
			return []string{b.Self, "ls", remote(src)}
		}},
		{smbclient, func(e endpoint, w workload) []string {
			host, port, _ := net.SplitHostPort(e.addr)
			protection := map[string]string{"plain": "off", "signed": "sign", "sealed": "encrypt"}[w.protection]
			do := map[string]string{
				"read":  fmt.Sprintf("get %s %s", w.source(), os.DevNull),
				"write": fmt.Sprintf("put %s %s", local(w.source()), writtenName),
				"list":  fmt.Sprintf("cd %s; ls", w.source()),
			}[w.op]
			if do == "" {
				return nil
			}
			return []string{"smbclient", "--configfile=" + e.Conf, "--port=" + port, "--user=" + e.User,
				"--client-protection=" + protection, "//" + host + "/" + e.Share, "--command=" + do}
		}},
		{parallel, b.drive(8, "read", "write")},
		{ioCopy, b.drive(0, "read", "write")},
		{workers, b.drive(16, "upload", "download")},
		{goSMB2, b.drive(0, "list")},
	}
}

// drive returns the commands of the driver for some operations.
func (b *bench) drive(inFlight int, ops ...string) func(endpoint, workload) []string {
	return func(e endpoint, w workload) []string {
		if w.link == "20ms" || !slices.Contains(ops, w.op) {
			return nil
		}
		args := []string{b.driver, "-addr", e.addr, "-share", e.Share, "-user", e.User,
			"-parallel", fmt.Sprint(inFlight), w.op}
		local := filepath.Join(b.dir, w.source())
		switch w.op {
		case "write", "upload":
			return append(args, local, writtenName)
		case "download":
			return append(args, w.source(), filepath.Join(b.dir, writtenName))
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
