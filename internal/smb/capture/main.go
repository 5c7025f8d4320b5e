// Capture records what Samba's clients and server say to each other and writes
// it as the golden bytes of the codec tests: single SMB2 messages, the
// information classes in them, the negotiation of SMB1 and srvsvc calls.
//
// It owns no test. It needs root and, from Debian, samba, smbclient and
// samba-testsuite; everything stays on loopback. The password it uses is a
// throwaway. From the root of the tree:
//
//	go run ./internal/smb/capture
//
// It starts an smbd for each scenario, puts a recording relay in front of it
// and lets a client run. The first message of each kind is kept, so scenarios
// with the everyday client come first.
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/pagewire/pagewire/internal/sambatest"
)

// scenarioTimeout bounds one client's run.
const scenarioTimeout = 2 * time.Minute

func main() {
	log.SetFlags(0)
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	if _, err := os.Stat("internal/smb/capture"); err != nil {
		return errors.New("capture: run it from the root of the tree")
	}
	g := golden{}
	for _, s := range scenarios {
		if err := s.run(ctx, g); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		log.Printf("%-24s %4d files so far", s.name, len(g))
	}
	return g.write()
}

// run records one scenario.
func (s scenario) run(ctx context.Context, g golden) error {
	ctx, cancel := context.WithTimeout(ctx, scenarioTimeout)
	defer cancel()
	srv, err := sambatest.Run(ctx, sambatest.Config{
		Guest:  s.guest,
		Global: s.server,
		Share:  s.share,
	})
	if err != nil {
		return err
	}
	defer srv.Close()
	rec, err := newRecorder(srv.Addr)
	if err != nil {
		return err
	}
	defer rec.close()

	dir, err := os.MkdirTemp("", "capture-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "small"), []byte("far files, near\n"), 0o644); err != nil {
		return err
	}

	args := []string{"-s", srv.Conf, "-p", strconv.Itoa(rec.port), "-U", srv.User + "%" + srv.Password, "--netbiosname=CLIENT", "//127.0.0.1/" + srv.Share}
	cmd := exec.CommandContext(ctx, s.program, append(args, s.args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// Clients fail on purpose in some scenarios, so only silence is wrong.
	conns := rec.close()
	if len(conns) == 0 {
		return fmt.Errorf("no connection: %v\n%s", err, out)
	}
	if err != nil {
		log.Printf("%s: %v: %s", s.name, err, lastLine(out))
	}
	client := filepath.Base(s.program) + " " + version(s.program)
	server := "smbd " + version("smbd")
	for _, c := range conns {
		g.addConversation(c, "# from "+client+", "+s.name, "# from "+server+", "+s.name)
	}
	return nil
}

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1]
}

// golden holds the files to write, by path.
type golden map[string]string

// add keeps a file unless there is one already. Large messages add nothing, nor
// do those that only this torturer sends.
func (g golden) add(path, comment string, b []byte) {
	const most = 4 << 10
	if _, ok := g[path]; ok || len(b) == 0 || len(b) > most || strings.Contains(path, unknown) {
		return
	}
	var text strings.Builder
	text.WriteString(comment + "\n")
	for ; len(b) > 32; b = b[32:] {
		text.WriteString(hex.EncodeToString(b[:32]) + "\n")
	}
	text.WriteString(hex.EncodeToString(b) + "\n")
	g[path] = text.String()
}

// write replaces the golden folders by what was recorded.
func (g golden) write() error {
	for path := range g {
		if err := os.RemoveAll(filepath.Dir(path)); err != nil {
			return err
		}
	}
	for path, text := range g {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
