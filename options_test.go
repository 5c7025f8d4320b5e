package pagewire

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func id32(n uint32) *uint32 { return &n }

func secs(n time.Duration) *time.Duration { n *= time.Second; return &n }

func TestParseOptions(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Options
		out  string
	}{
		{"", Options{}, "rw"},
		{",,rw,", Options{}, "rw"},
		{"ro,rw,ro", Options{ReadOnly: true}, "ro"},
		{"username=alice", Options{User: "alice"}, "rw,username=alice"},
		{`user=WORK\alice`, Options{User: "alice", Domain: "WORK"}, "rw,username=alice,domain=WORK"},
		{"user=WORK/alice,dom=HOME", Options{User: "alice", Domain: "HOME"}, "rw,username=alice,domain=HOME"},
		{"user=alice@example.org", Options{User: "alice@example.org"}, "rw,username=alice@example.org"},
		{`username="smith, alice",workgroup=x`, Options{User: "smith, alice", Domain: "x"}, `rw,username="smith, alice",domain=x`},
		{`username=a"b`, Options{User: `a"b`}, `rw,username=a"b`},
		{"cred=/etc/nas.cred,uid=1000,gid=100", Options{Credentials: "/etc/nas.cred", UID: id32(1000), GID: id32(100)}, "rw,uid=1000,gid=100"},
		{"uid=root,gid=root", Options{UID: id32(0), GID: id32(0)}, "rw,uid=0,gid=0"},
		{"guest", Options{Guest: true}, "rw,guest"},
		{"sec=none", Options{Security: "none"}, "rw,sec=none"},
		{"sec=none,sec=ntlmsspi,seal", Options{Security: "ntlmsspi", Seal: true}, "rw,sec=ntlmsspi,seal"},
		{"vers=3.11", Options{Version: "3.1.1"}, "rw,vers=3.1.1"},
		{"vers=2.0", Options{Version: "2.0.2"}, "rw,vers=2.0.2"},
		{"vers=2.1,seal,vers=3", Options{Version: "3", Seal: true}, "rw,vers=3,seal"},
		{"vers=3.02,vers=default", Options{}, "rw"},
		{"port=1445,ip=::1", Options{Port: 1445, IP: "::1"}, "rw,addr=::1,port=1445"},
		{"rsize=4096,wsize=1M", Options{ReadSize: 4096, WriteSize: 1 << 20}, "rw,rsize=4096,wsize=1048576"},
		{"rsize=64k,rsize=16M,max_credits=128", Options{ReadSize: 16 << 20, MaxCredits: 128}, "rw,rsize=16777216,max_credits=128"},
		{"file_mode=0640,dir_mode=750", Options{FileMode: 0o640, DirMode: 0o750}, "rw,file_mode=0640,dir_mode=0750"},
		{"mapchars,mfsymlinks,soft,sign", Options{MapChars: true, MFSymlinks: true, Sign: true}, "rw,mapchars,mfsymlinks,sign"},
		{"cache=strict", Options{Cache: CacheStrict}, "rw,cache=strict"},
		{"cache=none,cache=loose", Options{Cache: CacheLoose}, "rw,cache=loose"},
		{"cache=singleclient,rw,vers=3,user=a", Options{Cache: CacheSingleClient, Version: "3", User: "a"}, "rw,vers=3,cache=singleclient,username=a"},
		{"cache=ro", Options{Cache: CacheReadOnly, ReadOnly: true}, "ro,cache=ro"},
		{"rw,ro,cache=ro", Options{Cache: CacheReadOnly, ReadOnly: true}, "ro,cache=ro"},
		{"rw,cache=ro,cache=strict", Options{Cache: CacheStrict}, "rw,cache=strict"},
		{"directio", Options{Cache: CacheNone}, "rw,cache=none"},
		{"cache=none,forcedirectio", Options{Cache: CacheNone}, "rw,cache=none"},
		{"strictcache,cache=strict", Options{Cache: CacheStrict}, "rw,cache=strict"},
		{"rasize=1M", Options{ReadAhead: 1 << 20}, "rw,rasize=1048576"},
		{"rasize=6m,wsize=1M,rsize=1M", Options{ReadAhead: 6 << 20, ReadSize: 1 << 20, WriteSize: 1 << 20}, "rw,rsize=1048576,wsize=1048576,rasize=6291456"},
		{"rasize=33554432", Options{ReadAhead: 32 << 20}, "rw,rasize=33554432"},
		{"rasize=6M,rasize=auto", Options{}, "rw"},
		{"pagesize=4096", Options{PageSize: 4 << 10}, "rw,pagesize=4096"},
		{"pagesize=1M,cachesize=8M", Options{PageSize: 1 << 20, CacheSize: 8 << 20}, "rw,pagesize=1048576,cachesize=8388608"},
		{"cachesize=64M,rsize=16M,wsize=16M", Options{ReadSize: 16 << 20, WriteSize: 16 << 20, CacheSize: 64 << 20}, "rw,rsize=16777216,wsize=16777216,cachesize=67108864"},
		{"cachesize=1024G,rasize=2M,max_credits=9", Options{CacheSize: 1 << 40, ReadAhead: 2 << 20, MaxCredits: 9}, "rw,rasize=2097152,cachesize=1099511627776,max_credits=9"},
		{"actimeo=0", Options{AttrTime: secs(0), DirAttrTime: secs(0)}, "rw,actimeo=0"},
		{"actimeo=3,actimeo=5", Options{AttrTime: secs(5), DirAttrTime: secs(5)}, "rw,actimeo=5"},
		{"acregmax=7,acdirmax=7", Options{AttrTime: secs(7), DirAttrTime: secs(7)}, "rw,actimeo=7"},
		{"acregmax=0,acdirmax=60,max_credits=9", Options{AttrTime: secs(0), DirAttrTime: secs(60), MaxCredits: 9}, "rw,max_credits=9,acdirmax=60,acregmax=0"},
		{"acregmax=10737418", Options{AttrTime: secs(10737418)}, "rw,acregmax=10737418"},
		{"acdirmax=1", Options{DirAttrTime: secs(1)}, "rw,acdirmax=1"},
		{"serverino", Options{}, "rw"},
		{"nostrictsync,noserverino,mfsymlinks,mapchars", Options{NoStrictSync: true, NoServerInodes: true, MFSymlinks: true, MapChars: true}, "rw,noserverino,mapchars,mfsymlinks,nostrictsync"},
		{"nomapposix,echo_interval=5", Options{MapNone: true, EchoInterval: 5 * time.Second}, "rw,nomapposix,echo_interval=5"},
	} {
		got, err := ParseOptions(c.in)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("ParseOptions(%q) = %+v, %v; want %+v", c.in, got, err, c.want)
		}
		if got.String() != c.out {
			t.Errorf("ParseOptions(%q).String() = %q, want %q", c.in, got, c.out)
		}
		if c.want.Credentials == "" { // which is not shown
			if again, err := ParseOptions(got.String()); err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("ParseOptions(%q) = %+v, %v; want %+v", got, again, err, got)
			}
		}
	}
}

func TestParseOptionsErrors(t *testing.T) {
	for in, want := range map[string]string{
		"rsise=1M":                        `unknown option "rsise" (did you mean rsize?)`,
		"raed":                            `unknown option "raed"`,
		"mapcahrs":                        `(did you mean mapchars?)`,
		"usr=x":                           `(did you mean user?)`,
		"fsc=yes":                         `unknown option "fsc"`,
		"wsize=1K":                        "wsize=1K is not between 4096 and 16777216 bytes",
		"rsize=16385k":                    "rsize=16385k is not between 4096 and 16777216 bytes",
		"rsize=9999999999999G":            "is not between",
		"rsize=4E9":                       "is not between",
		"rsize=-4096":                     "is not between",
		"rsize":                           `option "rsize" needs a value, as in rsize=SIZE`,
		"rsize=":                          "needs a value",
		"seal=yes":                        `option "seal" takes no value`,
		"port=0":                          "port=0 is not between 1 and 65535",
		"max_credits=0":                   "max_credits=0 is not between 1 and 65535",
		"file_mode=888":                   "file_mode=888 is not between",
		"dir_mode=01777":                  "is not between",
		"vers=1.0":                        "vers=1.0 is not 2.0.2, 2.1",
		"sec=krb5":                        "sec=krb5 is not none, ntlmssp or ntlmsspi",
		"uid=nobody-of-this-name":         "is no user and no number",
		"gid=-1":                          "is no group and no number",
		"ip=nas":                          "ip=nas is not an address",
		"echo_interval=601":               "is not between 1 and 600 seconds",
		`username="alice`:                 "no quote at the end",
		`username="alice"x,rw`:            "no quote at the end",
		"guest,user=alice":                "options guest and username contradict each other",
		"pass=x,guest":                    "options guest and password contradict each other",
		"guest,seal":                      "options guest and seal contradict each other",
		"sec=none,sign":                   "options sec=none and sign contradict each other",
		"username=a,sec=ntlmssp,sec=none": "options sec=none and username contradict each other",
		"seal,vers=2.1":                   "options vers=2.1 and seal contradict each other",
		"vers=2.0,seal":                   "options vers=2.0.2 and seal contradict each other",
		"mapposix,mapchars":               "options mapposix and mapchars contradict each other",
		"nomapposix,mapchars":             "options mapchars and nomapposix contradict each other",
		"noserverino,serverino":           "options serverino and noserverino contradict each other",
	} {
		_, err := ParseOptions(in)
		var oe *OptionError
		if !errors.As(err, &oe) || oe.Option == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseOptions(%q): %v, want %q", in, err, want)
		}
	}
}

// TestCacheOptionsErrors holds what is said about the options of the cache to the
// word: each tells its name and what it may be.
func TestCacheOptionsErrors(t *testing.T) {
	for _, c := range []struct{ in, option, want string }{
		{"cache", "cache", `option "cache" needs a value, as in cache=MODE`},
		{"cache=Strict", "cache", "cache=Strict is not strict, none, loose, ro or singleclient"},
		{"directio=1", "directio", `option "directio" takes no value`},
		{"rw,cache=ro", "rw", "options rw and cache=ro contradict each other"},
		{"cache=ro,ro,rw", "rw", "options rw and cache=ro contradict each other"},
		{"strictcache,forcedirectio", "directio", "options directio and strictcache contradict each other"},
		{"cache=strict,forcedirectio", "directio", "options directio and cache=strict contradict each other"},
		{"directio,cache=loose", "directio", "options directio and cache=loose contradict each other"},
		{"directio,cache=ro", "directio", "options directio and cache=ro contradict each other"},
		{"directio,cache=singleclient", "directio", "options directio and cache=singleclient contradict each other"},
		{"strictcache,cache=none", "strictcache", "options strictcache and cache=none contradict each other"},
		{"cache=loose,strictcache", "strictcache", "options strictcache and cache=loose contradict each other"},
		{"cache=ro,strictcache", "strictcache", "options strictcache and cache=ro contradict each other"},
		{"strictcache,cache=singleclient", "strictcache", "options strictcache and cache=singleclient contradict each other"},

		{"rasize=1048575", "rasize", "rasize=1048575 is neither auto nor between 1048576 and 33554432 bytes"},
		{"rasize=33554433", "rasize", "rasize=33554433 is neither auto nor between 1048576 and 33554432 bytes"},
		{"rasize=0", "rasize", "rasize=0 is neither auto nor between 1048576 and 33554432 bytes"},
		{"rasize=6MiB", "rasize", "rasize=6MiB is neither auto nor between 1048576 and 33554432 bytes"},
		{"rasize=-6M", "rasize", "rasize=-6M is neither auto nor between 1048576 and 33554432 bytes"},
		{"rasize=M", "rasize", "rasize=M is neither auto nor between 1048576 and 33554432 bytes"},
		{"rasize=18446744073709551616", "rasize", "rasize=18446744073709551616 is neither auto nor between 1048576 and 33554432 bytes"},

		{"pagesize=2K", "pagesize", "pagesize=2K is not a power of two between 4096 and 1048576 bytes"},
		{"pagesize=12K", "pagesize", "pagesize=12K is not a power of two between 4096 and 1048576 bytes"},
		{"pagesize=2M", "pagesize", "pagesize=2M is not a power of two between 4096 and 1048576 bytes"},
		{"pagesize=64X", "pagesize", "pagesize=64X is not a power of two between 4096 and 1048576 bytes"},

		{"cachesize=8388607", "cachesize", "cachesize=8388607 is not between 8388608 and 1099511627776 bytes"},
		{"cachesize=1025G", "cachesize", "cachesize=1025G is not between 8388608 and 1099511627776 bytes"},
		{"cachesize=1T", "cachesize", "cachesize=1T is not between 8388608 and 1099511627776 bytes"},
		{"cachesize=63M,rsize=16M", "cachesize", "cachesize=66060288 is not between 67108864, which is 4 times rsize=16777216, and 1099511627776 bytes"},
		{"wsize=4M,cachesize=8M,rsize=1M", "cachesize", "cachesize=8388608 is not between 16777216, which is 4 times wsize=4194304, and 1099511627776 bytes"},
		{"rsize=4M,wsize=8M,cachesize=31M", "cachesize", "cachesize=32505856 is not between 33554432, which is 4 times wsize=8388608, and 1099511627776 bytes"},

		{"actimeo=-1", "actimeo", "actimeo=-1 is not between 0 and 10737418 seconds"},
		{"actimeo=10737419", "actimeo", "actimeo=10737419 is not between 0 and 10737418 seconds"},
		{"acregmax=1.5", "acregmax", "acregmax=1.5 is not between 0 and 10737418 seconds"},
		{"acdirmax=1s", "acdirmax", "acdirmax=1s is not between 0 and 10737418 seconds"},
		{"actimeo=1,acregmax=1", "actimeo", "options actimeo and acregmax contradict each other"},
		{"acdirmax=2,actimeo=1", "actimeo", "options actimeo and acdirmax contradict each other"},
	} {
		_, err := ParseOptions(c.in)
		oe := new(OptionError)
		if !errors.As(err, &oe) || *oe != (OptionError{c.option, c.want}) {
			t.Errorf("ParseOptions(%q): %v (option %q), want %q (option %q)", c.in, err, oe.Option, c.want, c.option)
		}
	}
}

func TestCacheMode(t *testing.T) {
	if got := CacheMode("").String(); got != "strict" {
		t.Errorf("the default is cache=%s", got)
	}
	if got := CacheSingleClient.String(); got != "singleclient" {
		t.Errorf("got cache=%s", got)
	}
}

func TestOptionsHidePassword(t *testing.T) {
	const secret = "hunter2"
	for _, in := range []string{"password=" + secret, `user=a,pass="x,` + secret + `"`} {
		o, err := ParseOptions(in)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := o.password.get(); !strings.HasSuffix(got, secret) {
			t.Errorf("ParseOptions(%q) lost the password: %q", in, got)
		}
		leaks(t, o, secret)
		leaks(t, &o, secret)
	}
	for _, in := range []string{
		"password=x," + secret, "password=x," + secret + "=y", "password=" + secret + ",guest", "rsise,password=" + secret,
		`password="` + secret,
	} {
		_, err := ParseOptions(in)
		if err == nil {
			t.Errorf("ParseOptions(%q) succeeded", in)
			continue
		}
		leaks(t, err, secret)
	}
}

// TestOptionTable checks what the table must be for its users to work.
func TestOptionTable(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range optionTable {
		for _, name := range append([]string{o.name}, o.aliases...) {
			if seen[name] || strings.ContainsAny(name, ",= ") {
				t.Errorf("option %q is there twice, or no name", name)
			}
			seen[name] = true
		}
		if o.help == "" {
			t.Errorf("option %q has no help", o.name)
		}
	}
	for _, c := range contradictions {
		for _, what := range c {
			if name, _, _ := strings.Cut(what, "="); findOption(name) == nil {
				t.Errorf("contradictions has %q, which is no option", name)
			}
		}
	}
	var names []string
	for o := range AllOptions() {
		names = append(names, o.Name)
	}
	if !slices.IsSorted(names) || len(names) != len(optionTable) {
		t.Errorf("AllOptions: %v, want all %d in order", names, len(optionTable))
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"rsise", "rsize", 1}, {"rszie", "rsize", 1}, {"size", "rsize", 1}, {"wsize", "rsize", 1}, {"seal", "sign", 3},
	} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
