package smb

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/auth"
	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/smbtest"
)

// deafConn is a way to a server that can be cut without anybody noticing.
type deafConn struct {
	net.Conn
	deaf *atomic.Bool
}

func (d deafConn) Read(p []byte) (int, error) {
	for {
		n, err := d.Conn.Read(p)
		if err != nil || !d.deaf.Load() {
			return n, err
		}
	}
}

func (d deafConn) Write(p []byte) (int, error) {
	if d.deaf.Load() {
		return len(p), nil
	}
	return d.Conn.Write(p)
}

// The way to the server is cut while nothing is sent, and somebody else changes the file
// long before that is noticed.
func TestCutUnnoticed(t *testing.T) {
	for _, ours := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			srv := smbtest.NewUnstarted(smbtest.Config{})
			defer srv.Close()
			if err := srv.WriteFile("file", []byte("content")); err != nil {
				t.Fatal(err)
			}
			var deaf *atomic.Bool
			c, err := NewClient(t.Context(), ClientConfig{Server: "server", Connect: func(ctx context.Context) (net.Conn, auth.Credentials, error) {
				nc, err := srv.Dial(ctx, "", "")
				deaf = new(atomic.Bool)
				return deafConn{nc, deaf}, auth.Credentials{User: "user", Password: "pass"}, err
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(context.Background())
			sh, err := c.Mount(t.Context(), "share")
			if err != nil {
				t.Fatal(err)
			}
			ev := make(told, 64)
			o, err := sh.Open(t.Context(), remote.At{Name: "file"}, remote.How{Access: remote.ForRead | remote.ForWrite, Rights: allRights}, obliging{ev})
			if err != nil {
				t.Fatal(err)
			}
			if ours {
				if err := writeAt(t.Context(), o, 0, []byte("CONTENT")); err != nil {
					t.Fatal(err)
				}
			}
			<-time.After(apart)
			first := deaf
			first.Store(true)
			<-time.After(time.Hour)
			other := dialTest(t, srv, Config{})
			if _, err := other.WriteFile(t.Context(), remote.At{Name: "file"}, remote.How{Create: remote.Truncate}, []byte("foreign")); err != nil {
				t.Error(err)
			}
			other.s.Close(t.Context())
			<-time.After(time.Hour)
			// it wakes up, and asks something
			if err := readAt(t.Context(), o, 0, []byte("foreign")); err != nil {
				t.Error(err)
			}
			<-time.After(time.Minute)
			outdated := false
			for _, ch := range ev.caught(t) {
				t.Logf("ours %v: %+v", ours, ch)
				outdated = outdated || ch.Trust == remote.Outdated
			}
			if !outdated {
				t.Errorf("ours %v: nobody was told that somebody else has written the file", ours)
			}
			o.Open.Close(t.Context())
		})
	}
}
