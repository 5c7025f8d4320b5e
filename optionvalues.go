package pagewire

import (
	"fmt"
	"io/fs"
	"math"
	"net/netip"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// What the table of options is made of: parsers of values, and their way back
// into text.

func flag(set func(*Options)) func(*Options, string) error {
	return func(o *Options, _ string) error { set(o); return nil }
}

func ifSet(name string, is func(*Options) bool) func(*Options) string {
	return func(o *Options) string {
		if is(o) {
			return name
		}
		return ""
	}
}

func text(name string, get func(*Options) string) func(*Options) string {
	return func(o *Options) string {
		v := get(o)
		switch {
		case v == "":
			return ""
		case strings.Contains(v, ","):
			v = `"` + v + `"`
		}
		return name + "=" + v
	}
}

func count[N int | int64](name string, get func(*Options) N) func(*Options) string {
	return func(o *Options) string {
		if n := get(o); n != 0 {
			return name + "=" + strconv.FormatInt(int64(n), 10)
		}
		return ""
	}
}

func seconds(name string, get func(*Options) *time.Duration) func(*Options) string {
	return func(o *Options) string {
		if d := get(o); d != nil {
			return name + "=" + strconv.FormatInt(int64(*d/time.Second), 10)
		}
		return ""
	}
}

// unlessSame shows nothing where actimeo tells all.
func unlessSame(show func(*Options) string) func(*Options) string {
	return func(o *Options) string {
		if sameAttrTime(o) != nil {
			return ""
		}
		return show(o)
	}
}

func id(name string, get func(*Options) *uint32) func(*Options) string {
	return func(o *Options) string {
		if n := get(o); n != nil {
			return name + "=" + strconv.FormatUint(uint64(*n), 10)
		}
		return ""
	}
}

func octal(name string, get func(*Options) fs.FileMode) func(*Options) string {
	return func(o *Options) string {
		if m := get(o); m != 0 {
			return fmt.Sprintf("%s=%#04o", name, uint32(m))
		}
		return ""
	}
}

func number(name string, least, most int, field func(*Options) *int) func(*Options, string) error {
	return func(o *Options, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%s=%s is not between %d and %d", name, v, least, most)
		}
		*field(o) = n
		return nil
	}
}

func size[N int | int64](name string, least, most int64, field func(*Options) *N) func(*Options, string) error {
	return func(o *Options, v string) error {
		n, ok := parseSize(v)
		if !ok || n < least || n > most {
			return fmt.Errorf("%s=%s is not between %d and %d bytes", name, v, least, most)
		}
		*field(o) = N(n)
		return nil
	}
}

// parseSize reads bytes, or K, M or G of them.
func parseSize(s string) (n int64, ok bool) {
	unit := int64(1)
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			unit = 1 << 10
		case 'm', 'M':
			unit = 1 << 20
		case 'g', 'G':
			unit = 1 << 30
		}
	}
	if unit > 1 {
		s = s[:len(s)-1]
	}
	u, err := strconv.ParseUint(s, 10, 63)
	n = int64(u)
	return n * unit, err == nil && n <= math.MaxInt64/unit
}

func mode(name string, field func(*Options) *fs.FileMode) func(*Options, string) error {
	return func(o *Options, v string) error {
		n, err := strconv.ParseUint(v, 8, 32)
		if err != nil || n == 0 || n > 0o777 {
			return fmt.Errorf("%s=%s is not between 1 and 0777, in octal", name, v)
		}
		*field(o) = fs.FileMode(n)
		return nil
	}
}

func setVersion(o *Options, v string) error {
	switch v {
	case "2.0", "2.0.2", "2.02":
		v = "2.0.2"
	case "2.1", "3.0", "3.0.2", "3.1.1", "3":
	case "3.02":
		v = "3.0.2"
	case "3.11":
		v = "3.1.1"
	case "default":
		v = ""
	default:
		return fmt.Errorf("vers=%s is not 2.0.2, 2.1, 3.0, 3.0.2, 3.1.1, 3 or default", v)
	}
	o.Version = v
	return nil
}

func setSecurity(o *Options, v string) error {
	switch v {
	case "none", "ntlmssp", "ntlmsspi":
		o.Security = v
		return nil
	}
	return fmt.Errorf("sec=%s is not none, ntlmssp or ntlmsspi", v)
}

func setCache(o *Options, v string) error {
	switch m := CacheMode(v); m {
	case CacheStrict, CacheNone, CacheLoose, CacheReadOnly, CacheSingleClient:
		o.Cache = m
		return nil
	}
	return fmt.Errorf("cache=%s is not strict, none, loose, ro or singleclient", v)
}

func setReadAhead(o *Options, v string) error {
	n, ok := parseSize(v)
	switch {
	case v == "auto":
		n = 0
	case !ok || n < minReadAhead || n > maxReadAhead:
		return fmt.Errorf("rasize=%s is neither auto nor between %d and %d bytes", v, minReadAhead, maxReadAhead)
	}
	o.ReadAhead = int(n)
	return nil
}

func setPageSize(o *Options, v string) error {
	n, ok := parseSize(v)
	if !ok || n < minPage || n > maxPage || n&(n-1) != 0 {
		return fmt.Errorf("pagesize=%s is not a power of two between %d and %d bytes", v, minPage, maxPage)
	}
	o.PageSize = int(n)
	return nil
}

// leastCache returns how small the page cache may be: it has room for four of the
// largest pieces, so that a stream fills one while those before it are used and
// written. of is the option that asks for more than the usual, "" if none does.
func (o *Options) leastCache() (n int64, of string) {
	n = minCache
	for _, size := range []struct {
		name string
		n    int
	}{{"rsize", o.ReadSize}, {"wsize", o.WriteSize}, {"pagesize", o.PageSize}} {
		if need := 4 * int64(size.n); need > n {
			n, of = need, fmt.Sprintf("%s=%d", size.name, size.n)
		}
	}
	return n, of
}

func (o *Options) checkCacheSize() error {
	if least, of := o.leastCache(); o.CacheSize != 0 && o.CacheSize < least {
		return &OptionError{"cachesize", fmt.Sprintf("cachesize=%d is not between %d, which is 4 times %s, and %d bytes", o.CacheSize, least, of, int64(maxCache))}
	}
	return nil
}

// attrTime takes seconds for all of the given fields.
func attrTime(name string, fields ...func(*Options) **time.Duration) func(*Options, string) error {
	return func(o *Options, v string) error {
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil || n > maxAttrTime {
			return fmt.Errorf("%s=%s is not between 0 and %d seconds", name, v, maxAttrTime)
		}
		for _, field := range fields {
			d := time.Duration(n) * time.Second
			*field(o) = &d
		}
		return nil
	}
}

func fileAttrTime(o *Options) **time.Duration { return &o.AttrTime }
func dirAttrTime(o *Options) **time.Duration  { return &o.DirAttrTime }

// sameAttrTime returns the time that is set for both files and folders, if it is.
func sameAttrTime(o *Options) *time.Duration {
	if f, d := o.AttrTime, o.DirAttrTime; f != nil && d != nil && *f == *d {
		return f
	}
	return nil
}

// setUser takes NAME, DOMAIN\NAME and DOMAIN/NAME.
func setUser(o *Options, v string) error {
	if domain, name, ok := splitUser(v); ok {
		o.Domain, v = domain, name
	}
	o.User = v
	return nil
}

func splitUser(s string) (domain, name string, ok bool) {
	i := strings.IndexAny(s, `\/`)
	if i <= 0 || i == len(s)-1 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

func setUID(o *Options, v string) error {
	u, err := strconv.ParseUint(v, 10, 32)
	if err != nil {
		known, lookupErr := user.Lookup(v)
		if lookupErr != nil {
			return fmt.Errorf("uid=%s is no user and no number", v)
		}
		if u, err = strconv.ParseUint(known.Uid, 10, 32); err != nil {
			return fmt.Errorf("uid=%s has the id %s, which is no number", v, known.Uid)
		}
	}
	n := uint32(u)
	o.UID = &n
	return nil
}

func setGID(o *Options, v string) error {
	u, err := strconv.ParseUint(v, 10, 32)
	if err != nil {
		known, lookupErr := user.LookupGroup(v)
		if lookupErr != nil {
			return fmt.Errorf("gid=%s is no group and no number", v)
		}
		if u, err = strconv.ParseUint(known.Gid, 10, 32); err != nil {
			return fmt.Errorf("gid=%s has the id %s, which is no number", v, known.Gid)
		}
	}
	n := uint32(u)
	o.GID = &n
	return nil
}

func setIP(o *Options, v string) error {
	if _, err := netip.ParseAddr(v); err != nil {
		return fmt.Errorf("ip=%s is not an address", v)
	}
	o.IP = v
	return nil
}

func setEcho(o *Options, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > maxEcho {
		return fmt.Errorf("echo_interval=%s is not between 1 and %d seconds", v, maxEcho)
	}
	o.EchoInterval = time.Duration(n) * time.Second
	return nil
}
