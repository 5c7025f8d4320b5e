package main

import "strings"

// scenario is one run of one client against one server.
type scenario struct {
	name    string
	program string
	args    []string
	guest   bool // the server takes guests

	server, share []string // lines of smb.conf
}

// everyday is what people do with smbclient.
var everyday = []string{
	"mkdir d", "put small d/one", "put small d/two", "put small d/τρία",
	"cd d", "ls", "allinfo one", "get one one.back", "scopy two four", "rename four five",
	"setmode five +h", "utimes five -1 -1 2021:01:02-03:04:05 -1", "setea one colour blue", "geteas one",
	"showacls", "ls", "hardlink one link", "symlink one far", "readlink far", "get absent", "reget one", "append small one",
	"echo 1 hello", "volume", "du", "del *", "cd ..", "rmdir d", "tdis", "logoff",
}

func smbclient(name string, commands []string, flags ...string) scenario {
	return scenario{name: name, program: "smbclient", args: append(flags, "-c", strings.Join(commands, "; "))}
}

// smbtorture runs tests of Samba's own, with the rights and streams they want.
func smbtorture(tests ...string) scenario {
	return scenario{
		name:    strings.Join(tests, " "),
		program: "smbtorture",
		args:    tests,
		share:   []string{"admin users = daemon", "vfs objects = streams_xattr"},
	}
}

// with adds lines to the server's section of smb.conf.
func (s scenario) with(lines ...string) scenario {
	s.server = lines
	return s
}

// welcoming makes the server take guests.
func (s scenario) welcoming() scenario {
	s.guest = true
	return s
}

// dialect runs commands in one dialect only.
func dialect(name string, flags ...string) scenario {
	return smbclient(name, brief, append(flags, "-m", name, "--option=client min protocol="+name)...)
}

var brief = []string{"ls", "put small x", "get x y", "del x"}

var scenarios = []scenario{
	smbclient("everyday", everyday),
	smbclient("share list", nil, "-L", "127.0.0.1"),
	smbclient("multi-protocol negotiation", brief, "--option=client min protocol=NT1"),
	smbclient("smb1", brief, "-m", "NT1", "--option=client min protocol=NT1").with("server min protocol = NT1"),
	smbclient("guest", brief, "-U", "mallory%x").welcoming(),
	smbclient("null session", nil, "-L", "127.0.0.1", "-U", "%"),
	smbclient("wrong password", nil, "-U", "alice%wrong"),
	dialect("SMB2_02"), dialect("SMB2_10"), dialect("SMB3_00"), dialect("SMB3_02"), dialect("SMB3_11"),
	smbclient("sealed", brief).with("smb encrypt = required"),

	smbtorture("smb2.connect"),
	smbtorture("smb2.getinfo"),
	smbtorture("smb2.timestamps.delayed-write-vs-seteof", "smb2.durable-open.alloc-size"),
	smbtorture("smb2.scan.find", "smb2.dir.one", "smb2.dir.find"),
	smbtorture("smb2.read", "smb2.rw.rw1"),
	smbtorture("smb2.lock.lock", "smb2.lock.cancel", "smb2.lock.async", "smb2.lock.truncate"),
	smbtorture("smb2.notify.valid-req", "smb2.notify.dir", "smb2.notify.overflow"),
	smbtorture("smb2.create.blob", "smb2.create.open", "smb2.create.leading-slash"),
	smbtorture("smb2.lease.request", "smb2.lease.breaking1", "smb2.lease.v2_request", "smb2.lease.v2_epoch2"),
	smbtorture("smb2.oplock.exclusive2", "smb2.oplock.batch2"),
	smbtorture("smb2.durable-open.open-lease", "smb2.durable-open.reopen2"),
	smbtorture("smb2.durable-v2-open.create-blob", "smb2.durable-v2-open.open-lease", "smb2.durable-v2-open.reopen2-lease-v2"),
	smbtorture("smb2.compound", "smb2.compound_find"),
	smbtorture("smb2.ioctl"),
	smbtorture("smb2.streams.io", "smb2.streams.rename"),
}
