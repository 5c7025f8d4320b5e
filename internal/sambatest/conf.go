package sambatest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// stateDirs are the directories smbd must not share with another one, with the
// smb.conf option for each.
var stateDirs = []struct{ name, option string }{
	{"state", "state directory"},
	{"cache", "cache directory"},
	{"lock", "lock directory"},
	{"pid", "pid directory"},
	{"private", "private dir"},
	{"rpc", "ncalrpc dir"},
	{"bind", "winbindd socket directory"},
	{"log", ""},
}

// writeConf writes smb.conf and the map that gives the user a Unix account.
func (s *Server) writeConf(c Config) error {
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("[global]")
	line("server role = standalone server")
	line("workgroup = PAGEWIRE")
	line("netbios name = PAGEWIRE") // else the host's, which may be too long
	line("disable netbios = yes")
	line("interfaces = lo")
	line("bind interfaces only = yes")
	if s.Port != 0 { // not known yet to addUser
		line("smb ports = %d", s.Port)
	}
	line("server min protocol = SMB2_02")
	line("passdb backend = tdbsam")
	line("username map = %s", filepath.Join(s.home, "users"))
	for _, d := range stateDirs {
		if d.option != "" {
			line("%s = %s", d.option, filepath.Join(s.home, d.name))
		}
	}
	line("usershare path =")
	line("log file = %s", filepath.Join(s.home, "log", "smbd"))
	line("log level = 1")
	line("max log size = 0")
	line("smbd profiling level = count")
	line("load printers = no")
	line("printcap name = /dev/null")
	line("disable spoolss = yes")
	if c.Guest {
		line("map to guest = Bad User")
		line("guest account = %s", unixAccount)
	}
	for _, l := range c.Global {
		line("%s", l)
	}

	line("[%s]", s.Share)
	line("path = %s", s.Dir)
	line("read only = no")
	if c.Guest {
		line("guest ok = yes")
	}
	if !userXattrs(s.Dir) {
		// DOS attributes and streams have to be kept elsewhere.
		line("vfs objects = xattr_tdb")
	}
	for _, l := range c.Share {
		line("%s", l)
	}
	if err := os.WriteFile(s.Conf, b.Bytes(), 0o644); err != nil {
		return err
	}
	mapping := fmt.Sprintf("!%s = %s\n", unixAccount, s.User)
	return os.WriteFile(filepath.Join(s.home, "users"), []byte(mapping), 0o644)
}

// addUser puts the account into the server's own password database. It needs
// no smbd. pdbedit takes the system's database if it dislikes smb.conf, so the
// caller's lines have to wait.
func (s *Server) addUser(ctx context.Context) error {
	if err := s.writeConf(Config{}); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, find("pdbedit"), confFlag+s.Conf, "--create", "--password-from-stdin", "--user="+unixAccount)
	cmd.Stdin = strings.NewReader(s.Password + "\n" + s.Password + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pdbedit: %w\n%s", err, out)
	}
	return nil
}

// giveAway makes the Unix account the owner of dir.
func giveAway(dir string) error {
	u, err := user.Lookup(unixAccount)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	return os.Chown(dir, uid, gid)
}

// tempDir returns a folder in memory if there is one with room for large
// files: containers often have only 64 MiB there.
func tempDir() string {
	const shm, enough = "/dev/shm", 4 << 30
	var st syscall.Statfs_t
	if err := syscall.Statfs(shm, &st); err != nil || int64(st.Bavail)*int64(st.Bsize) < enough {
		return os.TempDir()
	}
	return shm
}
