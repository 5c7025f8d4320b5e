package main

import (
	"runtime"
	"slices"
	"testing"

	"github.com/pagewire/pagewire"
	"github.com/pagewire/pagewire/smbtest"
)

func TestOnlyCiphersNeedManyProcessors(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	plain, sealed := newServer(t, smbtest.Config{}), newServer(t, smbtest.Config{RequireSealing: true})
	var got []int
	r := &run{transfers: true, setProcessors: func(n int) int { got = append(got, n); return 0 }}
	for _, url := range []string{plain.URL, sealed.URL, plain.URL} {
		f, err := pagewire.Dial(t.Context(), url, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r.economize(f)
	}
	if all := runtime.NumCPU(); !slices.Equal(got, []int{1, all, all}) {
		t.Errorf("processors for a plain, a sealed and one more plain share: %v, want 1, then all %d", got, all)
	}
	r.transfers = false
	r.economize(nil)
	if len(got) != 3 {
		t.Error("a verb that transfers nothing set the processors")
	}
}
