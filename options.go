package pagewire

import (
	"errors"
	"io/fs"
	"iter"
	"time"
)

// Options are what -o says. The zero value is the default of everything.
type Options struct {
	User, Domain string
	Credentials  string // a file or a folder to read them from
	Guest        bool
	Anonymous    bool // sec=none
	Sign, Seal   bool // demanded

	Version string // of the protocol, as vers= has it: "3.1.1"; "": 2.1 and up
	Port    int
	IP      string // to connect to instead of what the host name resolves to

	ReadOnly          bool
	UID, GID          *uint32
	FileMode, DirMode fs.FileMode // 0: 0755

	ReadSize, WriteSize, MaxCredits int // 0: as large as the server allows

	MapChars, MapNone bool // neither: mapposix
	MFSymlinks        bool

	EchoInterval time.Duration

	password secret
}

// ParseOptions reads the options of one or more -o, joined by commas. Its errors
// are an *OptionError.
func ParseOptions(s string) (Options, error) { return Options{}, errors.ErrUnsupported }

// String returns the effective options in the order that cifs has them in
// /proc/mounts, without secrets.
func (o Options) String() string { return "" }

// OptionHelp describes one option of the table.
type OptionHelp struct {
	Name    string
	Aliases []string
	Value   string // what stands after =, as in SIZE; "" if nothing does
	Help    string
}

// AllOptions yields the table of options that ParseOptions reads, in order of name.
func AllOptions() iter.Seq[OptionHelp] { return nil }

// OptionError says what is wrong with an option.
type OptionError struct{ Option, Reason string }

func (e *OptionError) Error() string { return e.Reason }
