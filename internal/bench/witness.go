package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/pagewire/pagewire/internal/netsim"
)

// The witness is a file that takes many seconds to read over the link, unless
// that is made faster.
const (
	witnessName = "witness"
	witnessSize = 1 << 20
	witnessRate = 500e3
	witnessPoll = 20 * time.Millisecond
)

// path is how a client and a server talk, as smbd sees it.
type path struct {
	dialect, signing, sealing string // "" for none
}

func (p path) String() string {
	parts := []string{strings.ReplaceAll(strings.TrimPrefix(p.dialect, "SMB"), "_", ".")}
	if p.signing != "" {
		parts = append(parts, "signed "+p.signing)
	}
	if p.sealing != "" {
		parts = append(parts, "sealed "+p.sealing)
	}
	return strings.Join(parts, ", ")
}

// witness lets a client read over a slow link, asks smbd meanwhile how they
// talk, and fails if that is not what the case is about. Once smbd has answered
// there is no need to be slow.
func (b *bench) witness(ctx context.Context, s *server, c client) (p path, err error) {
	link := netsim.New(netsim.Config{Down: witnessRate})
	proxy, err := link.Proxy(s.Addr)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, proxy.Close()) }()

	e := endpoint{s.Server, proxy.Addr()}
	args := c.command(e, workload{op: "read", protection: s.protection, link: "witness"})
	if args == nil {
		args = c.command(e, workload{op: "stream-read", protection: s.protection, link: "witness"})
	}
	if args == nil {
		return p, nil // it never reads
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = endpoint{s.Server, ""}.environ()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return p, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	seen := false
	tick := time.NewTicker(witnessPoll)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			switch {
			case err != nil:
				return p, fmt.Errorf("%w\n%s", err, tail(out.Bytes()))
			case !seen:
				return p, errors.New("smbstatus did not see its session")
			}
			return p, p.check(s.protection)
		case <-tick.C:
			if seen {
				break
			}
			if p, seen = status(ctx, s); seen {
				link.Change(netsim.Config{})
			}
		}
	}
}

func (p path) check(protection string) error {
	want := map[string][2]bool{"plain": {false, false}, "signed": {true, false}, "sealed": {false, true}}[protection]
	// What is sealed may be signed inside its envelope as far as smbd tells.
	if signed := p.signing != ""; p.sealing == "" && signed != want[0] || (p.sealing != "") != want[1] {
		return fmt.Errorf("talks %v, which is not %s", p, protection)
	}
	return nil
}

// status asks smbd about its one session, once a file is open.
func status(ctx context.Context, s *server) (p path, ok bool) {
	out, err := exec.CommandContext(ctx, "smbstatus", "--configfile="+s.Conf, "--json").Output()
	if err != nil {
		return p, false
	}
	type crypto struct{ Cipher, Degree string }
	type security struct {
		Dialect    string `json:"session_dialect"`
		Encryption crypto
		Signing    crypto
	}
	var st struct {
		Sessions, Tcons map[string]security
		OpenFiles       map[string]any `json:"open_files"`
	}
	if json.Unmarshal(out, &st) != nil || len(st.OpenFiles) == 0 {
		return p, false
	}
	for _, set := range []map[string]security{st.Tcons, st.Sessions} {
		for _, sec := range set {
			if sec.Dialect != "" {
				p.dialect = sec.Dialect
			}
			if sec.Signing.Degree == "full" {
				p.signing = sec.Signing.Cipher
			}
			if sec.Encryption.Degree == "full" {
				p.sealing = sec.Encryption.Cipher
			}
		}
	}
	return p, p.dialect != ""
}
