package smb

import (
	"context"
	"fmt"
	"testing"

	"github.com/pagewire/pagewire/internal/sambatest"
	"github.com/pagewire/pagewire/internal/smb/srvsvc"
)

func TestSharesOfARealServer(t *testing.T) {
	var many []string
	for i := range 300 { // more than one fragment holds
		many = append(many, fmt.Sprintf("[share number %d]\n path = /tmp\n comment = the comment of share %d", i, i))
	}
	srv := sambatest.Start(t, sambatest.Config{Share: many})
	eachProtection(t, func(t *testing.T, cfg Config, want Info) {
		v := mount(t, srv, cfg)
		shares, err := v.s.Shares(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]srvsvc.Share)
		for _, s := range shares {
			got[s.Name] = s
		}
		if len(got) != 302 || got["IPC$"].Type&srvsvc.ShareMask != srvsvc.ShareIPC || got[srv.Share].Type != srvsvc.ShareDisk {
			t.Errorf("%d shares, IPC$ %v, %s %v; want 302, one for pipes and one disk", len(got), got["IPC$"], srv.Share, got[srv.Share])
		}
		if got, want := got["share number 299"].Comment, "the comment of share 299"; got != want {
			t.Errorf("comment %q, want %q", got, want)
		}
		checkPath(t, v.s, want)
	})
}
