package pagewire

import "errors"

// A Source says where something is: a server, a share of it, a path in that.
type Source struct {
	Host  string // a name or an address, IPv6 without brackets
	Port  int    // 0: the protocol's, 445
	Share string // "" for the server itself, to list its shares
	Path  string // below the share, as fs.ValidPath has it: "." for the share itself

	User, Domain string

	password secret
}

// ParseSource reads //host/share/path, which is taken as it stands, and
// smb://[DOM;]user[:password]@host[:port]/share/path, which is percent-decoded.
// The share may be missing. Its errors are a *SourceError.
func ParseSource(s string) (Source, error) { return Source{}, errors.ErrUnsupported }

// IsSource reports whether a command's argument means something on a server and
// not a local file: //…, scheme://…, or host:…, which a local name can escape by
// a leading ./ as with rsync.
func IsSource(arg string) bool { return false }

// String returns the source in the form it was given, without its password.
func (s Source) String() string { return "" }

// SourceError says what is wrong with a source.
type SourceError struct {
	Source string // without its password
	Reason string
}

func (e *SourceError) Error() string { return e.Source + ": " + e.Reason }

type secret struct{ s *string }
