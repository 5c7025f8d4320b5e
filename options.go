package pagewire

import (
	"cmp"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"slices"
	"strings"
	"time"
)

// Options are what -o says. The zero value is the default of everything.
type Options struct {
	User, Domain string
	Credentials  string // a file or a folder to read them from
	Guest        bool
	Security     string // "none" for anonymous, "ntlmssp", "ntlmsspi"; "": ntlmssp
	Sign, Seal   bool   // demanded

	Version string // of the protocol: "2.0.2" to "3.1.1", or "3" for 3.0 and up; "": 2.1 and up
	Port    int    // 0: the source's, or else the protocol's
	IP      string // to connect to instead of what the host name resolves to

	ReadOnly          bool
	UID, GID          *uint32     // owner of all files; nil: whoever mounts
	FileMode, DirMode fs.FileMode // 0: 0755

	ReadSize, WriteSize, MaxCredits int // 0: what server and link allow

	MapChars, MapNone bool // neither: mapposix
	MFSymlinks        bool

	// What is kept of files, and for how long.
	Cache                 CacheMode
	ReadAhead             int            // bytes beyond what was asked for; 0: what was measured to pay
	PageSize              int            // 0: 4 KiB
	CacheSize             int64          // bytes; 0: a quarter of the memory that is there, 256 MiB at most
	AttrTime, DirAttrTime *time.Duration // attributes of files and of folders; nil: one second
	NoServerInodes        bool           // files have inode numbers of our own
	NoStrictSync          bool           // fsync ends when all is written, be it only in the server's memory

	EchoInterval time.Duration // 0: half a minute

	password Secret
}

// CacheMode says what may be kept of files without the server's leave. The zero
// value is CacheStrict.
type CacheMode string

// The modes of mount.cifs.
const (
	CacheStrict       CacheMode = "strict"       // nothing: only what the server grants a right for
	CacheNone         CacheMode = "none"         // nothing, and no rights are asked for
	CacheLoose        CacheMode = "loose"        // what was read, until the file's times or size change
	CacheReadOnly     CacheMode = "ro"           // all, since nobody changes anything; implies ReadOnly
	CacheSingleClient CacheMode = "singleclient" // all, since nobody else uses the share
)

func (m CacheMode) String() string { return string(cmp.Or(m, CacheStrict)) }

const (
	minSize, maxSize           = 4 << 10, 16 << 20
	minReadAhead, maxReadAhead = 1 << 20, 32 << 20
	minPage, maxPage           = 4 << 10, 1 << 20
	minCache, maxCache         = 8 << 20, min(1<<40, math.MaxInt/2) // the most that can be reserved
	maxCredits                 = 65535
	maxEcho                    = 600
	// maxAttrTime is 2^30 ticks of the slowest clock that Linux has, a hundred a
	// second, so that whatever cifs takes on any machine is taken.
	maxAttrTime = 1 << 30 / 100
)

// option is one line of the table: what may stand in -o, and in mounts.
type option struct {
	name    string
	aliases []string
	value   string // what stands after =; "" if nothing may
	help    string
	set     func(o *Options, value string) error
	show    func(o *Options) string // as mounts has it; nil: never
}

// optionTable is in the order that cifs has in /proc/mounts.
var optionTable = []option{
	{name: "rw", help: "read and write (default)",
		set: flag(func(o *Options) { o.ReadOnly = false }), show: ifSet("rw", func(o *Options) bool { return !o.ReadOnly })},
	{name: "ro", help: "refuse to change anything",
		set: flag(func(o *Options) { o.ReadOnly = true }), show: ifSet("ro", func(o *Options) bool { return o.ReadOnly })},
	{name: "vers", value: "VERSION", help: "protocol: 2.0.2, 2.1, 3.0, 3.0.2, 3.1.1, 3 for 3.0 and up, or default for 2.1 and up",
		set: setVersion, show: text("vers", func(o *Options) string { return o.Version })},
	{name: "sec", value: "MECHANISM", help: "logon: ntlmssp (default), ntlmsspi to sign as well, or none to stay anonymous",
		set: setSecurity, show: text("sec", func(o *Options) string { return o.Security })},
	{name: "cache", value: "MODE", help: "what is kept of files: strict (default) what the server grants a right for, none nothing, " +
		"loose what was read until the file's times or size change, ro all, as if nobody changed anything (implies ro), singleclient all, as if nobody else used the share",
		set: setCache, show: text("cache", func(o *Options) string { return string(o.Cache) })},
	{name: "strictcache", help: "the same as cache=strict", set: flag(func(o *Options) { o.Cache = CacheStrict })},
	{name: "directio", aliases: []string{"forcedirectio"}, help: "the same as cache=none", set: flag(func(o *Options) { o.Cache = CacheNone })},
	{name: "username", aliases: []string{"user"}, value: "[DOMAIN\\]NAME", help: "who logs on (default: $USER)",
		set: setUser, show: text("username", func(o *Options) string { return o.User })},
	{name: "password", aliases: []string{"pass"}, value: "SECRET", help: "unsafe, since others can see it; rather use credentials",
		set: func(o *Options, v string) error { o.password = NewSecret(v); return nil }},
	{name: "credentials", aliases: []string{"cred"}, value: "FILE", help: "a file with lines username=, password=, domain=, or a folder with files of these names",
		set: func(o *Options, v string) error { o.Credentials = v; return nil }},
	{name: "guest", help: "log on as guest, without a password",
		set: flag(func(o *Options) { o.Guest = true }), show: ifSet("guest", func(o *Options) bool { return o.Guest })},
	{name: "domain", aliases: []string{"dom", "workgroup"}, value: "NAME", help: "domain or workgroup of the user",
		set: func(o *Options, v string) error { o.Domain = v; return nil }, show: text("domain", func(o *Options) string { return o.Domain })},
	{name: "uid", value: "ID", help: "owner of all files, a name or a number",
		set: setUID, show: id("uid", func(o *Options) *uint32 { return o.UID })},
	{name: "gid", value: "ID", help: "group of all files, a name or a number",
		set: setGID, show: id("gid", func(o *Options) *uint32 { return o.GID })},
	{name: "ip", aliases: []string{"addr"}, value: "ADDRESS", help: "connect to this address, whatever the host name resolves to",
		set: setIP, show: text("addr", func(o *Options) string { return o.IP })},
	{name: "port", value: "N", help: "TCP port (default: 445)",
		set: number("port", 1, 65535, func(o *Options) *int { return &o.Port }), show: count("port", func(o *Options) int { return o.Port })},
	{name: "file_mode", value: "OCTAL", help: "mode of files (default: 0755)",
		set: mode("file_mode", func(o *Options) *fs.FileMode { return &o.FileMode }), show: octal("file_mode", func(o *Options) fs.FileMode { return o.FileMode })},
	{name: "dir_mode", value: "OCTAL", help: "mode of folders (default: 0755)",
		set: mode("dir_mode", func(o *Options) *fs.FileMode { return &o.DirMode }), show: octal("dir_mode", func(o *Options) fs.FileMode { return o.DirMode })},
	{name: "soft", help: "give up on a dead server with an error (default)", set: flag(func(*Options) {})},
	{name: "serverino", help: "files have the inode numbers that the server gives them (default)",
		set: flag(func(o *Options) { o.NoServerInodes = false })},
	{name: "noserverino", help: "files have inode numbers of our own, for servers whose numbers are not unique",
		set: flag(func(o *Options) { o.NoServerInodes = true }), show: ifSet("noserverino", func(o *Options) bool { return o.NoServerInodes })},
	{name: "mapposix", help: "map the characters : * ? < > | \" \\ and a last space or dot as macOS does (default)",
		set: flag(func(o *Options) { o.MapChars, o.MapNone = false, false })},
	{name: "mapchars", help: "map the characters : * ? < > | \\ as Services for Unix does",
		set: flag(func(o *Options) { o.MapChars, o.MapNone = true, false }), show: ifSet("mapchars", func(o *Options) bool { return o.MapChars })},
	{name: "nomapposix", help: "map no characters",
		set: flag(func(o *Options) { o.MapChars, o.MapNone = false, true }), show: ifSet("nomapposix", func(o *Options) bool { return o.MapNone })},
	{name: "mfsymlinks", help: "keep symbolic links in files, as macOS and Minshall and French do",
		set: flag(func(o *Options) { o.MFSymlinks = true }), show: ifSet("mfsymlinks", func(o *Options) bool { return o.MFSymlinks })},
	{name: "nostrictsync", help: "fsync leaves it to the server when its disk gets what was written",
		set: flag(func(o *Options) { o.NoStrictSync = true }), show: ifSet("nostrictsync", func(o *Options) bool { return o.NoStrictSync })},
	{name: "sign", help: "demand that everything is signed",
		set: flag(func(o *Options) { o.Sign = true }), show: ifSet("sign", func(o *Options) bool { return o.Sign })},
	{name: "seal", help: "demand that everything is encrypted",
		set: flag(func(o *Options) { o.Seal = true }), show: ifSet("seal", func(o *Options) bool { return o.Seal })},
	{name: "rsize", value: "SIZE", help: "bytes in the largest read",
		set: size("rsize", minSize, maxSize, func(o *Options) *int { return &o.ReadSize }), show: count("rsize", func(o *Options) int { return o.ReadSize })},
	{name: "wsize", value: "SIZE", help: "bytes in the largest write",
		set: size("wsize", minSize, maxSize, func(o *Options) *int { return &o.WriteSize }), show: count("wsize", func(o *Options) int { return o.WriteSize })},
	{name: "rasize", value: "SIZE", help: "bytes to read ahead, 1M to 32M, or auto for what is measured to pay (default)",
		set: setReadAhead, show: count("rasize", func(o *Options) int { return o.ReadAhead })},
	{name: "pagesize", value: "SIZE", help: "bytes in a page of the cache, a power of two, 4K to 1M (default: 4K)",
		set: setPageSize, show: count("pagesize", func(o *Options) int { return o.PageSize })},
	{name: "cachesize", value: "SIZE", help: "bytes that the cache may have, 8M or more, and 4 times rsize, wsize and pagesize " +
		"(default: a quarter of the memory that the container or the machine has, 256M at most)",
		set: size("cachesize", minCache, maxCache, func(o *Options) *int64 { return &o.CacheSize }), show: count("cachesize", func(o *Options) int64 { return o.CacheSize })},
	{name: "echo_interval", value: "SECONDS", help: "ask a silent server for a sign of life so often; after twice as long it is dead (default: 30)",
		set:  setEcho,
		show: count("echo_interval", func(o *Options) int { return int(o.EchoInterval / time.Second) })},
	{name: "max_credits", value: "N", help: "most credits, of 64 KiB each, to hold at once",
		set: number("max_credits", 1, maxCredits, func(o *Options) *int { return &o.MaxCredits }), show: count("max_credits", func(o *Options) int { return o.MaxCredits })},
	{name: "actimeo", value: "SECONDS", help: "keep the attributes of files and folders so long before the server is asked again (default: 1)",
		set: attrTime("actimeo", fileAttrTime, dirAttrTime), show: seconds("actimeo", sameAttrTime)},
	{name: "acdirmax", value: "SECONDS", help: "keep the attributes of folders so long",
		set: attrTime("acdirmax", dirAttrTime), show: unlessSame(seconds("acdirmax", func(o *Options) *time.Duration { return o.DirAttrTime }))},
	{name: "acregmax", value: "SECONDS", help: "keep the attributes of files so long",
		set: attrTime("acregmax", fileAttrTime), show: unlessSame(seconds("acregmax", func(o *Options) *time.Duration { return o.AttrTime }))},
}

// contradictions are options, or options with a value, that exclude each other.
var contradictions = [][2]string{
	{"guest", "username"}, {"guest", "password"}, {"guest", "credentials"},
	{"guest", "sec=none"}, {"guest", "sec=ntlmsspi"}, {"guest", "sign"}, {"guest", "seal"},
	{"sec=none", "username"}, {"sec=none", "password"}, {"sec=none", "credentials"},
	{"sec=none", "sign"}, {"sec=none", "seal"},
	{"vers=2.0.2", "seal"}, {"vers=2.1", "seal"},
	{"rw", "cache=ro"},
	{"strictcache", "cache=none"}, {"strictcache", "cache=loose"}, {"strictcache", "cache=ro"}, {"strictcache", "cache=singleclient"},
	{"directio", "cache=strict"}, {"directio", "cache=loose"}, {"directio", "cache=ro"}, {"directio", "cache=singleclient"},
	{"directio", "strictcache"},
	{"serverino", "noserverino"},
	{"actimeo", "acdirmax"}, {"actimeo", "acregmax"},
	{"mapposix", "mapchars"}, {"mapposix", "nomapposix"}, {"mapchars", "nomapposix"},
}

// OptionError says what is wrong with an option.
type OptionError struct {
	Option string // its name
	Reason string
}

func (e *OptionError) Error() string { return e.Reason }

// ParseOptions reads the options of one or more -o, joined by commas. The last of
// two equal ones wins. Its errors are an *OptionError.
func ParseOptions(s string) (Options, error) {
	var o Options
	given := map[string]string{} // the name to how it stands in contradictions with a value
	afterPassword := false
	for s != "" {
		name, value, hasValue, rest, ok := nextOption(s)
		s = rest
		if name == "" && !hasValue {
			continue
		}
		opt := findOption(name)
		switch {
		case opt == nil && afterPassword: // it may be a part of the password
			return o, &OptionError{"password", "unknown option after password: quotes around a password protect its commas"}
		case opt == nil:
			return o, unknownOption(name)
		case !ok:
			return o, &OptionError{opt.name, fmt.Sprintf("option %q has no quote at the end of its value", name)}
		case opt.value == "" && hasValue:
			return o, &OptionError{opt.name, fmt.Sprintf("option %q takes no value", name)}
		case opt.value != "" && value == "" && opt.name != "password":
			return o, &OptionError{opt.name, fmt.Sprintf("option %q needs a value, as in %s=%s", name, name, opt.value)}
		}
		if err := opt.set(&o, value); err != nil {
			return o, &OptionError{opt.name, err.Error()}
		}
		afterPassword = opt.name == "password"
		given[opt.name] = opt.name
		switch opt.name {
		case "vers":
			given[opt.name] = "vers=" + o.Version
		case "sec":
			given[opt.name] = "sec=" + o.Security
		case "cache":
			given[opt.name] = "cache=" + o.Cache.String()
		case "ro": // takes back an earlier rw
			delete(given, "rw")
		}
	}
	for _, c := range contradictions {
		if stands(given, c[0]) && stands(given, c[1]) {
			return o, &OptionError{c[0], fmt.Sprintf("options %s and %s contradict each other", c[0], c[1])}
		}
	}
	o.ReadOnly = o.ReadOnly || o.Cache == CacheReadOnly
	return o, o.checkCacheSize()
}

func stands(given map[string]string, what string) bool {
	name, _, valued := strings.Cut(what, "=")
	is, ok := given[name]
	return ok && (!valued || is == what)
}

// nextOption cuts the first option from s. ok is false if a quoted value has no end.
func nextOption(s string) (name, value string, hasValue bool, rest string, ok bool) {
	end := strings.IndexAny(s, ",=")
	if end < 0 {
		return s, "", false, "", true
	}
	if name = s[:end]; s[end] == ',' {
		return name, "", false, s[end+1:], true
	}
	s = s[end+1:]
	if !strings.HasPrefix(s, `"`) {
		value, rest, _ = strings.Cut(s, ",")
		return name, value, true, rest, true
	}
	for i := 1; i < len(s); i++ {
		if s[i] == '"' && (i+1 == len(s) || s[i+1] == ',') {
			return name, s[1:i], true, strings.TrimPrefix(s[i+1:], ","), true
		}
	}
	return name, "", true, "", false
}

func findOption(name string) *option {
	for i := range optionTable {
		if o := &optionTable[i]; o.name == name || slices.Contains(o.aliases, name) {
			return o
		}
	}
	return nil
}

func unknownOption(name string) error {
	reason := fmt.Sprintf("unknown option %q", name)
	near, least := "", 3
	for _, o := range optionTable {
		for _, known := range append([]string{o.name}, o.aliases...) {
			if d := editDistance(name, known); d < least && d < len(known)-1 {
				near, least = known, d
			}
		}
	}
	if near != "" {
		reason += " (did you mean " + near + "?)"
	}
	return &OptionError{name, reason}
}

// editDistance counts the bytes to insert, delete, replace or swap with their
// neighbour that make b of a.
func editDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// String returns the options that are in effect and not the default, in the order
// that cifs has in /proc/mounts, without secrets.
func (o Options) String() string {
	var shown []string
	for _, opt := range optionTable {
		if opt.show == nil {
			continue
		}
		if s := opt.show(&o); s != "" {
			shown = append(shown, s)
		}
	}
	return strings.Join(shown, ",")
}

// OptionHelp describes one option of the table.
type OptionHelp struct {
	Name    string
	Aliases []string
	Value   string // what stands after =, as in SIZE; "" if nothing does
	Help    string
}

// AllOptions yields the options that ParseOptions knows, by name.
func AllOptions() iter.Seq[OptionHelp] {
	sorted := slices.SortedFunc(slices.Values(optionTable), func(a, b option) int { return strings.Compare(a.name, b.name) })
	return func(yield func(OptionHelp) bool) {
		for _, o := range sorted {
			if !yield(OptionHelp{o.name, slices.Clone(o.aliases), o.value, o.help}) {
				return
			}
		}
	}
}
