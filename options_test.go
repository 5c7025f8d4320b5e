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
		"cache=strict":                    `unknown option "cache"`,
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
	} {
		_, err := ParseOptions(in)
		var oe *OptionError
		if !errors.As(err, &oe) || oe.Option == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseOptions(%q): %v, want %q", in, err, want)
		}
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
