package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name, events string
		ok           bool
		want         string // the report's end
		has          []string
	}{
		{
			name: "leaves",
			events: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Package":"p","Test":"TestA/one","Elapsed":0}
{"Action":"pass","Package":"p","Test":"TestA/two/deep","Elapsed":0}
{"Action":"pass","Package":"p","Test":"TestA/two","Elapsed":0}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0}
{"Action":"pass","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"pass","Package":"p","Elapsed":1.25}
`,
			ok:   true,
			want: "\n3 passed, 0 failed, 0 skipped\n",
			has:  []string{"ok    p  3 passed  1.2s\n"},
		},
		{
			name: "skip",
			events: `{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestS","Output":"=== RUN   TestS\n"}
{"Action":"output","Package":"p","Test":"TestS","Output":"    s_test.go:7: samba: smbd is not installed\n"}
{"Action":"output","Package":"p","Test":"TestS","Output":"--- SKIP: TestS (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestS"}
{"Action":"pass","Package":"p"}
{"Action":"skip","Package":"without/tests"}
`,
			ok:   true,
			want: "\nskip  p TestS: samba: smbd is not installed\n1 passed, 0 failed, 1 skipped\n",
		},
		{
			name: "failing subtest",
			events: `{"Action":"output","Package":"p","Test":"TestA/one","Output":"    a_test.go:3: got 1, want 2\n"}
{"Action":"output","Package":"p","Test":"TestA/one","Output":"    --- FAIL: TestA/one (0.00s)\n"}
{"Action":"fail","Package":"p","Test":"TestA/one"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Test":"TestB"}
{"Action":"fail","Package":"p"}
`,
			want: "FAIL  p TestA/one\n    a_test.go:3: got 1, want 2\n1 passed, 1 failed, 0 skipped\n",
		},
		{
			name: "parent fails by itself",
			events: `{"Action":"pass","Package":"p","Test":"TestA/one"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
`,
			want: "FAIL  p TestA\n1 passed, 1 failed, 0 skipped\n",
		},
		{
			name: "build failure",
			events: `{"ImportPath":"p [p.test]","Action":"build-output","Output":"p/a.go:1:1: expected 'package'\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}
`,
			want: "FAIL  p\np/a.go:1:1: expected 'package'\n0 passed, 1 failed, 0 skipped\n",
		},
		{
			name: "panic ends the package",
			events: `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"panic: boom\n"}
{"Action":"fail","Package":"p"}
`,
			want: "FAIL  p\n      did not end: TestA\npanic: boom\n0 passed, 1 failed, 0 skipped\n",
		},
		{
			name: "cut short",
			events: `{"Action":"pass","Package":"p","Test":"TestA"}
`,
			want: "FAIL  p\n1 passed, 1 failed, 0 skipped\n",
		},
		{
			name:   "nothing ran",
			events: "go: cannot find main module\n",
			want:   "go: cannot find main module\n0 passed, 0 failed, 0 skipped\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out)
			if err := r.read(strings.NewReader(c.events)); err != nil {
				t.Fatal(err)
			}
			if ok := r.finish(); ok != c.ok {
				t.Errorf("ok is %v, want %v", ok, c.ok)
			}
			if !strings.HasSuffix(out.String(), c.want) {
				t.Errorf("got\n%s\nwant it to end in\n%s", out.String(), c.want)
			}
			for _, want := range c.has {
				if !strings.Contains(out.String(), want) {
					t.Errorf("got\n%s\nwant it to have\n%s", out.String(), want)
				}
			}
		})
	}
}
