package sambatest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is a living process of a server.
type process struct {
	pid, group int
	name       string
}

// serves reports whether the process was forked for a connection. The others
// have a name of their own, such as smbd-notifyd, or lead the group.
func (p process) serves() bool {
	return p.pid != p.group && (p.name == "smbd" || strings.HasPrefix(p.name, "smbd["))
}

// processes lists what belongs to the server and has not ended. That is smbd's
// group and, since smbd lets the servers behind its pipes found groups of their
// own, whatever was started with its smb.conf.
func (s *Server) processes() []process {
	var ps []process
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		p, ok := readProcess(folder)
		if !ok {
			continue
		}
		if p.group == s.cmd.Process.Pid {
			ps = append(ps, p)
			continue
		}
		args, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		if strings.Contains(string(args), "\x00"+confFlag+s.Conf+"\x00") {
			ps = append(ps, p)
		}
	}
	return ps
}

// readProcess reads a process's folder in /proc; it fails for one that has
// ended. See proc(5): "pid (name) state ppid pgrp ...", with anything in the
// name.
func readProcess(folder string) (process, bool) {
	b, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return process{}, false
	}
	pid, rest, _ := strings.Cut(string(b), " (")
	end := strings.LastIndex(rest, ") ")
	if end < 0 {
		return process{}, false
	}
	fields := strings.Fields(rest[end+2:])
	if len(fields) < 3 || fields[0] == "Z" || fields[0] == "X" {
		return process{}, false
	}
	p := process{name: rest[:end]}
	var errPID, errGroup error
	p.pid, errPID = strconv.Atoi(pid)
	p.group, errGroup = strconv.Atoi(fields[2])
	return p, errPID == nil && errGroup == nil
}
