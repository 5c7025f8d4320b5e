package pagewire

import (
	"net"
	"net/url"
	"strconv"
	"strings"
)

// A Source says where something is: a server, a share of it, a path in that.
type Source struct {
	Host  string // a name or an address, IPv6 without brackets
	Port  int    // 0: the protocol's, 445
	Share string // "" for the server itself, to list its shares
	Path  string // below the share, as fs.ValidPath has it: "." for the share itself

	User, Domain string

	password Secret
}

// SourceError says what is wrong with a source.
type SourceError struct {
	Source string // without its password
	Reason string
}

func (e *SourceError) Error() string { return e.Source + ": " + e.Reason }

// ParseSource reads //host/share/path, which is taken as it stands, and
// smb://[DOM;]user[:password]@host[:port]/share/path, which is percent-decoded.
// The share may be missing. Its errors are a *SourceError.
func ParseSource(s string) (Source, error) {
	var src Source
	var reason string
	scheme, _, isURL := strings.Cut(s, "://")
	switch {
	case strings.HasPrefix(s, "//"):
		src, reason = parseUNC(s[2:], "/")
	case strings.HasPrefix(s, `\\`):
		src, reason = parseUNC(s[2:], `\`)
	case isURL && strings.EqualFold(scheme, "smb"):
		src, reason = parseURL(s)
	case isURL:
		reason = "unsupported protocol " + strconv.Quote(scheme) + ", only smb is known"
	case strings.Contains(s, ":/"):
		reason = "unsupported protocol: host:/path means NFS; an SMB share is //host/share"
	case strings.Contains(s, ":"):
		reason = "not a source, which is //host/share/path or smb://host/share/path; a local name with a colon is ./" + s
	default:
		reason = "not a source, which is //host/share/path or smb://host/share/path"
	}
	if reason != "" {
		return Source{}, &SourceError{Source: withoutUser(s), Reason: reason}
	}
	return src, nil
}

// withoutUser cuts from s whatever may be a password, even if s is too broken to
// say where that ends, or a URL without its scheme.
func withoutUser(s string) string {
	at := strings.LastIndexByte(s, '@')
	if at < 0 || !strings.Contains(s[:at], ":") {
		return s
	}
	if scheme, rest, ok := strings.Cut(s, "://"); ok && len(scheme) < at {
		return scheme + "://…" + rest[at-len(scheme)-len("://"):]
	}
	slashes := len(s) - len(strings.TrimLeft(s, `/\`))
	return s[:slashes] + "…" + s[at:]
}

func parseUNC(s, separator string) (src Source, reason string) {
	server, path, _ := strings.Cut(s, separator)
	if src.Host, src.Port, reason = splitHostPort(server); reason != "" {
		return src, reason
	}
	reason = src.setPath(strings.Split(path, separator))
	return src, reason
}

func parseURL(s string) (src Source, reason string) {
	u, err := url.Parse(s)
	if err != nil { // which quotes the URL
		return src, "not a URL; what is not a letter or digit in a name or password may need its %XX form"
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return src, "? and # have no meaning here; in a name they are %3F and %23"
	}
	if src.Host, src.Port, reason = splitHostPort(u.Host); reason != "" {
		return src, reason
	}
	if u.User != nil {
		src.User = u.User.Username()
		if domain, user, ok := strings.Cut(src.User, ";"); ok {
			src.Domain, src.User = domain, user
		}
		if password, ok := u.User.Password(); ok {
			src.password = NewSecret(password)
		}
		if src.User == "" {
			return src, "no user before @"
		}
	}
	names := strings.Split(u.EscapedPath(), "/")
	for i := range names {
		if names[i], err = url.PathUnescape(names[i]); err != nil {
			return src, "not a URL path"
		}
	}
	reason = src.setPath(names)
	return src, reason
}

// splitHostPort takes apart host, host:port, [IPv6], [IPv6]:port and IPv6.
func splitHostPort(server string) (host string, port int, reason string) {
	if strings.Contains(server, "@") { // and perhaps a password
		return "", 0, "a user stands in smb://user@host/share only"
	}
	host = server
	if strings.HasPrefix(server, "[") && strings.HasSuffix(server, "]") {
		host = server[1 : len(server)-1]
	} else if h, p, err := net.SplitHostPort(server); err == nil {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return "", 0, "port " + strconv.Quote(p) + " is not between 1 and 65535"
		}
		host, port = h, int(n)
	}
	if host == "" {
		return "", 0, "no host"
	}
	if strings.ContainsAny(host, "[]\\/\"' \t\r\n\x00") {
		return "", 0, "host " + strconv.Quote(host) + " is no name or address"
	}
	return host, port, ""
}

// setPath takes the share and the names below it.
func (s *Source) setPath(names []string) (reason string) {
	kept := names[:0]
	for _, name := range names {
		switch {
		case name == "" || name == ".":
			continue
		case name == "..":
			return ".. in a path"
		case strings.ContainsAny(name, "/\x00"):
			return "name " + strconv.Quote(name) + " contains / or NUL"
		}
		kept = append(kept, name)
	}
	s.Path = "."
	if len(kept) > 0 {
		s.Share = kept[0]
	}
	if len(kept) > 1 {
		s.Path = strings.Join(kept[1:], "/")
	}
	return ""
}

// IsSource reports whether a command's argument means something on a server and
// not a local file: //…, scheme://… or host:…. A local name of that form needs a
// leading ./.
func IsSource(arg string) bool {
	if strings.HasPrefix(arg, "//") || strings.HasPrefix(arg, `\\`) {
		return true
	}
	colon := strings.IndexByte(arg, ':')
	return colon > 0 && !strings.Contains(arg[:colon], "/")
}

// String returns the source without its password: as //host/share/path, or as a
// URL if it says more than that.
func (s Source) String() string {
	path := s.Share
	if s.Path != "." && s.Path != "" {
		path += "/" + s.Path
	}
	host := s.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if s.Port == 0 && s.User == "" && s.Domain == "" {
		return strings.TrimSuffix("//"+host+"/"+path, "/")
	}
	u := url.URL{Scheme: "smb", Host: host, Path: "/" + path}
	if s.Port != 0 {
		u.Host += ":" + strconv.Itoa(s.Port)
	}
	if s.Domain != "" {
		u.User = url.User(s.Domain + ";" + s.User)
	} else if s.User != "" {
		u.User = url.User(s.User)
	}
	return strings.TrimSuffix(u.String(), "/")
}
