package main

import (
	"encoding/json"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/pagewire/pagewire"
)

func TestModeString(t *testing.T) {
	for m, want := range map[fs.FileMode]string{
		0o644:                      "-rw-r--r--",
		fs.ModeDir | 0o755:         "drwxr-xr-x",
		fs.ModeSymlink | 0o777:     "lrwxrwxrwx",
		fs.ModeIrregular | 0o600:   "?rw-------",
		fs.ModeDir | fs.ModeSticky: "d---------",
	} {
		if got := modeString(m); got != want {
			t.Errorf("modeString(%v) = %q, want %q", m, got, want)
		}
	}
}

func TestLsTime(t *testing.T) {
	now := time.Date(2026, 6, 15, 12, 0, 0, 0, time.Local)
	for _, c := range []struct {
		t    time.Time
		want string
	}{
		{now.Add(-time.Hour), "Jun 15 11:00"},
		{now.AddDate(0, -5, -10), "Jan  5 12:00"},
		{now.AddDate(0, -7, 0), "Nov 15  2025"},
		{now.AddDate(0, 0, 2), "Jun 17  2026"},
	} {
		if got := lsTime(c.t, now); got != c.want {
			t.Errorf("lsTime(%v) = %q, want %q", c.t, got, c.want)
		}
	}
}

// sysInfo is a file as the library describes it.
func sysInfo(t *testing.T, attr *pagewire.Attr) fs.FileInfo {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	info, err := fstest.MapFS{"a": {Data: []byte("hello"), Mode: 0o755, ModTime: at, Sys: attr}}.Stat("a")
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestStatText(t *testing.T) {
	info := sysInfo(t, &pagewire.Attr{ID: 42, Links: 1, DOS: 0x21, Alloc: 4096, Born: time.Unix(0, 0)})
	text := statText("//nas/media/a", "b", info)
	for _, want := range []string{
		"  File: //nas/media/a -> b\n", "Size: 5 ", "Allocated: 4096 ", "file\n", "Inode: 42 ", "Links: 1\n",
		"(0755/-rwxr-xr-x)", "(0x21) readonly, archive\n", "Modify: 2026-01-0", "Access: -\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestFileJSON(t *testing.T) {
	b, err := json.Marshal(newFileJSON("a", "", sysInfo(t, &pagewire.Attr{ID: 42, DOS: 0x20, Alloc: 4096})))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"a","type":"file","size":5,"mode":"0755","mtime":"2026-01-02T03:04:05.0000006Z",` +
		`"id":42,"attributes":["archive"],"allocated":4096}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestDfRow(t *testing.T) {
	u := pagewire.Usage{Total: 100 << 30, Free: 40 << 30, Avail: 30 << 30}
	got := table([][]string{
		{"Filesystem", "Size", "Used", "Avail", "Use%"}, dfRow("//nas/media", u, true), dfRow("//nas/x", pagewire.Usage{}, true),
	})
	want := "Filesystem  Size Used Avail Use%\n" +
		"//nas/media 100G  60G   30G  67%\n" +
		"//nas/x        0    0     0    -\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := dfRow("x", u, false)[1]; got != "104857600" {
		t.Errorf("%s blocks, want 104857600", got)
	}
}
