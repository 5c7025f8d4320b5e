package smb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pagewire/pagewire/internal/remote"
	"github.com/pagewire/pagewire/internal/smb/smbconn"
	"github.com/pagewire/pagewire/smbtest"
)

// apart is how far apart things are done, so that a server's times tell them apart.
const apart = 10 * time.Second

// obliging hears, too, and gives up what it is asked to.
type obliging struct{ told }

func (o obliging) Rights(ch remote.Change) {
	o.told <- ch
	if ch.Ack != nil {
		go ch.Ack(nil)
	}
}

// caught is what events have heard, which has to be in order.
func (c told) caught(t *testing.T) (all []remote.Change) {
	t.Helper()
	synctest.Wait()
	for {
		select {
		case ch := <-c:
			if n := len(all); n > 0 && ch.Epoch <= all[n-1].Epoch {
				t.Errorf("told of epoch %d after %d", ch.Epoch, all[n-1].Epoch)
			}
			all = append(all, ch)
		default:
			return all
		}
	}
}

// trusts checks the order of verdicts.
func (c told) trusts(t *testing.T, want ...remote.Trust) (last remote.Change) {
	t.Helper()
	var got []remote.Trust
	for _, last = range c.caught(t) {
		got = append(got, last.Trust)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("told %v, want %v", got, want)
	}
	return last
}

// TestRightsComeBack without anybody asking, for a file that is as before.
func TestRightsComeBack(t *testing.T) {
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		l.write(t, "file", []byte("content"))
		c := make(told, 64)
		o := l.open(t, "file", allRights, obliging{c})
		if o.Rights != allRights {
			t.Fatalf("rights %b", o.Rights)
		}
		for range 3 {
			<-time.After(apart)
			l.cut()
			if last := c.trusts(t, remote.Unsure, remote.Current); last.Rights != allRights || last.Epoch <= o.Epoch || last.Node != "file" {
				t.Errorf("told of %+v", last)
			}
		}
		l.srv.Break("file", "R")
		if last := c.trusts(t, remote.Current); last.Rights != remote.CacheRead {
			t.Errorf("told of %+v", last)
		}
		if n := l.srv.Stats().BreakTimeouts; n != 0 {
			t.Errorf("%d breaks were not acknowledged", n)
		}
		if err := o.Open.Close(t.Context()); err != nil {
			t.Error(err)
		}
		c.nothing(t, "it is closed")
	})
}

// TestRightsComeBackLate are there again once an operation finds the server, long
// after everybody has given up.
func TestRightsComeBackLate(t *testing.T) {
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		c := make(told, 64)
		l.open(t, "file", allRights, obliging{c})
		l.cutOff()
		<-time.After(time.Hour)
		c.trusts(t, remote.Unsure)
		l.block(nil)
		<-time.After(time.Hour)
		c.trusts(t)
		if _, err := l.sh.GetAttr(t.Context(), remote.At{}); err != nil {
			t.Error(err)
		}
		c.trusts(t, remote.Current)
	})
}

// meanwhile opens a file, and does something on the server while its connection is lost.
func meanwhile(t *testing.T, do func(t *testing.T, l *lab, other *Volume), test func(t *testing.T, l *lab, o remote.Opened, c told)) {
	t.Helper()
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		l.write(t, "file", []byte("content"))
		l.write(t, "beside", []byte("content"))
		beside := l.open(t, "beside", allRights, obliging{make(told, 64)})
		c := make(told, 64)
		o := l.open(t, "file", allRights, obliging{c})
		<-time.After(apart)
		l.cutOff()
		c.trusts(t, remote.Unsure)
		<-time.After(apart)
		other := dialTest(t, l.srv, Config{})
		do(t, l, other)
		other.s.Close(t.Context())
		<-time.After(apart)
		l.block(nil)
		test(t, l, o, c)
		if err := readAt(t.Context(), beside, 0, []byte("content")); err != nil {
			t.Errorf("another file: %v", err)
		}
		if err := o.Open.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// isStale checks that an open has no file any more.
func isStale(t *testing.T, o remote.Opened) {
	t.Helper()
	_, err := o.File.GetAttr(t.Context(), o.Open)
	check(t, "GetAttr", err, syscall.ESTALE)
	check(t, "ReadAt", readAt(t.Context(), o, 0, []byte("content")), syscall.ESTALE)
	check(t, "WriteAt", writeAt(t.Context(), o, 0, []byte("CONTENT")), syscall.ESTALE)
	_, err = o.File.SetSize(t.Context(), o.Open, 0)
	check(t, "SetSize", err, syscall.ESTALE)
	_, err = o.File.Commit(t.Context(), o.Open, nil)
	check(t, "Commit", err, syscall.ESTALE)
	_, _, err = o.Open.Append(t.Context(), [][]byte{[]byte("more")})
	check(t, "Append", err, syscall.ESTALE)
}

func TestReplacedMeanwhile(t *testing.T) {
	meanwhile(t, func(t *testing.T, l *lab, other *Volume) {
		if err := other.Remove(t.Context(), remote.At{Name: "file"}, false); err != nil {
			t.Error(err)
		}
		l.write(t, "file", []byte("foreign"))
	}, func(t *testing.T, l *lab, o remote.Opened, c told) {
		<-time.After(apart)
		c.trusts(t, remote.Outdated)
		isStale(t, o)
		l.has(t, "file", []byte("foreign"))
		l.cut()
		isStale(t, o)
		c.trusts(t)
		now := l.open(t, "file", allRights, obliging{c})
		if now.File == o.File {
			t.Error("the new file is taken for the old one")
		}
		if err := readAt(t.Context(), now, 0, []byte("foreign")); err != nil {
			t.Error(err)
		}
	})
}

func TestRemovedMeanwhile(t *testing.T) {
	for what, do := range map[string]func(t *testing.T, l *lab, other *Volume) error{
		"removed": func(t *testing.T, l *lab, other *Volume) error {
			return other.Remove(t.Context(), remote.At{Name: "file"}, false)
		},
		"renamed": func(t *testing.T, l *lab, other *Volume) error {
			_, err := other.Rename(t.Context(), remote.At{Name: "file"}, remote.At{Name: "elsewhere"}, false)
			return err
		},
		"made a folder": func(t *testing.T, l *lab, other *Volume) error {
			err := other.Remove(t.Context(), remote.At{Name: "file"}, false)
			_, e := other.Make(t.Context(), remote.At{Name: "file"}, remote.Make{Kind: remote.Dir})
			return errors.Join(err, e)
		},
	} {
		t.Run(what, func(t *testing.T) {
			meanwhile(t, func(t *testing.T, l *lab, other *Volume) {
				if err := do(t, l, other); err != nil {
					t.Error(err)
				}
			}, func(t *testing.T, l *lab, o remote.Opened, c told) {
				isStale(t, o)
				c.trusts(t, remote.Outdated)
			})
		})
	}
}

// TestChangedMeanwhile by somebody else, which whoever keeps bytes has to know. The
// opens go on.
func TestChangedMeanwhile(t *testing.T) {
	for what, content := range map[string]string{"other bytes": "foreign", "longer": "content and more", "shorter": "con"} {
		t.Run(what, func(t *testing.T) {
			meanwhile(t, func(t *testing.T, l *lab, other *Volume) {
				how := remote.How{Create: remote.TruncateNew}
				if _, err := other.WriteFile(t.Context(), remote.At{Name: "file"}, how, []byte(content)); err != nil {
					t.Error(err)
				}
			}, func(t *testing.T, l *lab, o remote.Opened, c told) {
				<-time.After(apart)
				if last := c.trusts(t, remote.Outdated); last.Rights != allRights {
					t.Errorf("told of %+v", last)
				}
				if err := readAt(t.Context(), o, 0, []byte(content)); err != nil {
					t.Error(err)
				}
				if err := writeAt(t.Context(), o, 0, []byte("X")); err != nil {
					t.Error(err)
				}
				l.has(t, "file", []byte("X"+content[1:]))
				c.trusts(t)
			})
		})
	}
}

// TestUnansweredAndChanged has a WRITE under way when the connection is lost, and
// somebody else write the file before it is there again.
func TestUnansweredAndChanged(t *testing.T) {
	for what, do := range map[string]func(ctx context.Context, o remote.Opened) error{
		"WRITE": func(ctx context.Context, o remote.Opened) error { return writeAt(ctx, o, 0, []byte("CONTENT")) },
		"size":  func(ctx context.Context, o remote.Opened) error { _, err := o.File.SetSize(ctx, o.Open, 5); return err },
		"FLUSH": func(ctx context.Context, o remote.Opened) error {
			_, err := o.File.Commit(ctx, o.Open, nil)
			return err
		},
	} {
		for _, rights := range []remote.Rights{allRights, 0} {
			t.Run(fmt.Sprint(what, rights), func(t *testing.T) {
				lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
					l.write(t, "file", []byte("content"))
					c := make(told, 64)
					o := l.open(t, "file", rights, obliging{c})
					o2 := l.open(t, "file", rights, obliging{c})
					<-time.After(apart)
					l.faults(func(r smbtest.Request) smbtest.Fault {
						return smbtest.Fault{Drop: r.Command == "WRITE" || r.Command == "SET_INFO" || r.Command == "FLUSH"}
					})
					var errs [2]error
					var wg sync.WaitGroup
					for i, o := range []remote.Opened{o, o2} {
						wg.Go(func() { errs[i] = do(t.Context(), o) })
					}
					<-time.After(apart)
					l.cutOff()
					<-time.After(apart)
					l.faults(func(smbtest.Request) smbtest.Fault { return smbtest.Fault{} })
					other := dialTest(t, l.srv, Config{})
					if _, err := other.WriteFile(t.Context(), remote.At{Name: "file"}, remote.How{Create: remote.Truncate}, []byte("foreign")); err != nil {
						t.Error(err)
					}
					other.s.Close(t.Context())
					l.block(nil)
					wg.Wait()
					for _, err := range errs {
						check(t, what, err, syscall.ESTALE)
					}
					l.has(t, "file", []byte("foreign"))
					c.trusts(t, remote.Unsure, remote.Outdated)
					if err := writeAt(t.Context(), o, 0, []byte("F")); err != nil {
						t.Errorf("a later write: %v", err)
					}
					l.has(t, "file", []byte("Foreign"))
				})
			})
		}
	}
}

// TestLostTwice finds the change of somebody else under a second connection, which is
// lost before what was under way is sent again under the third.
func TestLostTwice(t *testing.T) {
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		l.write(t, "file", []byte("content"))
		o := l.open(t, "file", 0, nil)
		o2 := l.open(t, "file", 0, nil)
		<-time.After(apart)
		l.faults(func(r smbtest.Request) smbtest.Fault { return smbtest.Fault{Drop: r.Command == "WRITE"} })
		wrote := make(chan error)
		go func() { wrote <- writeAt(t.Context(), o, 0, []byte("CONTENT")) }()
		<-time.After(apart)
		l.cutOff()
		<-time.After(apart)
		l.faults(func(smbtest.Request) smbtest.Fault { return smbtest.Fault{} })
		other := dialTest(t, l.srv, Config{})
		if _, err := other.WriteFile(t.Context(), remote.At{Name: "file"}, remote.How{Create: remote.Truncate}, []byte("foreign")); err != nil {
			t.Error(err)
		}
		other.s.Close(t.Context())
		// The first to come back is the other open; the second connection ends then.
		opens := 0
		var mu sync.Mutex
		l.faults(func(r smbtest.Request) smbtest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if r.Command == "CREATE" {
				if opens++; opens == 2 {
					return smbtest.Fault{CutAt: 1}
				}
			}
			return smbtest.Fault{}
		})
		l.block(nil)
		if _, err := o2.File.GetAttr(t.Context(), o2.Open); err != nil {
			t.Error(err)
		}
		check(t, "WriteAt", <-wrote, syscall.ESTALE)
		l.has(t, "file", []byte("foreign"))
	})
}

// TestOwnWritesAreNoChange by somebody else, whether they were answered or not.
func TestOwnWritesAreNoChange(t *testing.T) {
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		c := make(told, 64)
		o := l.open(t, "file", allRights, obliging{c})
		var want []byte
		for i := range 10 {
			<-time.After(apart)
			p := bytes.Repeat([]byte{byte('a' + i)}, 1000)
			switch i % 5 {
			case 0: // answered
			case 1:
				l.cutReply("WRITE", 1)
			case 2:
				l.cutRequest(500)
			case 3: // answered, and asked about
				defer l.cut()
			case 4:
				if _, err := o.File.SetSize(t.Context(), o.Open, int64(len(want)/2)); err != nil {
					t.Error(err)
				}
				want = want[:len(want)/2]
			}
			if err := writeAt(t.Context(), o, int64(len(want)), p); err != nil {
				t.Errorf("%d: %v", i, err)
			}
			want = append(want, p...)
			if i%5 == 3 {
				if _, err := o.File.GetAttr(t.Context(), o.Open); err != nil {
					t.Error(err)
				}
			}
			<-time.After(apart)
			l.cut()
			for _, ch := range c.caught(t) {
				if ch.Trust == remote.Outdated {
					t.Errorf("%d: told of %+v", i, ch)
				}
			}
		}
		l.has(t, "file", want)
	})
}

// TestOwnChangesByName are none by somebody else either.
func TestOwnChangesByName(t *testing.T) {
	file := remote.At{Name: "file"}
	for what, do := range map[string]func(ctx context.Context, l *lab) error{
		"times": func(ctx context.Context, l *lab) error {
			_, err := l.sh.SetAttr(ctx, file, remote.SetAttr{Written: time.Unix(1, 0)})
			return err
		},
		"birth": func(ctx context.Context, l *lab) error {
			_, err := l.sh.SetAttr(ctx, file, remote.SetAttr{Born: time.Unix(1, 0)})
			return err
		},
		"link": func(ctx context.Context, l *lab) error {
			return l.sh.Link(ctx, file, remote.At{Name: "link"})
		},
		"rename": func(ctx context.Context, l *lab) error {
			_, err := l.sh.Rename(ctx, file, remote.At{Name: "other"}, false)
			return err
		},
		"append": func(ctx context.Context, l *lab) error {
			o, err := l.sh.Open(ctx, file, remote.How{Access: remote.ForRead | remote.ForWrite}, nil)
			if err != nil {
				return err
			}
			_, _, err = o.Open.Append(ctx, [][]byte{[]byte("more")})
			return errors.Join(err, o.Open.Close(ctx))
		},
		"truncation": func(ctx context.Context, l *lab) error {
			o, err := l.sh.Open(ctx, file, remote.How{Access: remote.ForRead | remote.ForWrite, Create: remote.Truncate}, nil)
			if err != nil {
				return err
			}
			return errors.Join(writeAt(ctx, o, 0, []byte("x")), o.Open.Close(ctx))
		},
	} {
		t.Run(what, func(t *testing.T) {
			lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
				l.write(t, "file", []byte("content"))
				l.write(t, "dir/file", []byte("content"))
				c, d := make(told, 64), make(told, 64)
				o := l.open(t, "file", allRights, obliging{c})
				o2 := l.open(t, "dir/file", allRights, obliging{d})
				<-time.After(apart)
				if err := do(t.Context(), l); err != nil {
					t.Fatal(err)
				}
				c.caught(t)
				<-time.After(apart)
				l.cut()
				c.trusts(t, remote.Unsure, remote.Current)
				d.trusts(t, remote.Unsure, remote.Current)
				for _, o := range []remote.Opened{o, o2} {
					if _, err := o.File.GetAttr(t.Context(), o.Open); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestRenamedBeforeItIsBack finds a file that nobody has used since the connection was
// lost, where a rename over the new connection has put it.
func TestRenamedBeforeItIsBack(t *testing.T) {
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		l.write(t, "dir/file", []byte("content"))
		o := l.open(t, "dir/file", 0, nil)
		l.cut()
		if _, err := l.sh.Rename(t.Context(), remote.At{Name: "dir"}, remote.At{Name: "other"}, false); err != nil {
			t.Fatal(err)
		}
		if err := readAt(t.Context(), o, 0, []byte("content")); err != nil {
			t.Error(err)
		}
		// And again, when no handle of the file is open by the time it is renamed.
		o2 := l.open(t, "other/file", 0, nil)
		l.cut()
		if err := readAt(t.Context(), o2, 0, []byte("content")); err != nil {
			t.Error(err)
		}
		if err := o2.Open.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := l.sh.Rename(t.Context(), remote.At{Name: "other"}, remote.At{Name: "third"}, false); err != nil {
			t.Fatal(err)
		}
		o3 := l.open(t, "third/file", 0, nil)
		if o3.File != o.File {
			t.Error("one file is two")
		}
		if err := readAt(t.Context(), o, 0, []byte("content")); err != nil {
			t.Error(err)
		}
	})
}

// TestOneFile is one before and after, whoever opens it, and one verdict is told.
func TestOneFile(t *testing.T) {
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		l.write(t, "file", []byte("content"))
		c := make(told, 64)
		opens := []remote.Opened{l.open(t, "file", allRights, c), l.open(t, "file", allRights, c), l.open(t, "file", allRights, c)}
		for range 20 {
			<-time.After(apart)
			l.last().cut()
			var wg sync.WaitGroup
			var o remote.Opened
			wg.Go(func() { o = l.open(t, "file", allRights, c) })
			for _, o := range opens {
				wg.Go(func() {
					if err := readAt(t.Context(), o, 0, []byte("content")); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if o.File != opens[0].File {
				t.Error("one file is two")
			}
			// Unless it was back before anybody could be told, somebody was unsure.
			all := c.caught(t)
			if n := len(all); n == 0 || n > 2 || all[n-1].Trust != remote.Current || all[n-1].Rights&remote.CacheRead == 0 ||
				n == 2 && all[0].Trust != remote.Unsure {
				t.Errorf("told of %+v", all)
			}
			if err := o.Open.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		l.has(t, "file", []byte("content"))
		for _, o := range opens {
			if err := o.Open.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if len(l.sh.files) != 0 || len(l.sh.ids) != 0 {
			t.Errorf("%d files are left", len(l.sh.files))
		}
	})
}

// TestOldSessionIsSilent hears nothing of a session that is lost: neither a change that
// was on its way up, nor an answer to an acknowledgment.
func TestOldSessionIsSilent(t *testing.T) {
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		c := make(told, 64)
		o := l.open(t, "file", allRights, c)
		f := o.File.(*lastingFile)
		old := f.s
		l.srv.Break("file", "R")
		synctest.Wait()
		late := <-c
		l.cutOff()
		c.trusts(t, remote.Unsure)
		f.changed(old, remote.Change{Rights: allRights, Epoch: 77})
		late.Ack(nil)
		c.trusts(t)
		l.block(nil)
		<-time.After(apart)
		c.trusts(t, remote.Current)
		f.changed(old, remote.Change{Rights: 0, Epoch: 99})
		f.lost(old)
		late.Ack(nil)
		late.Ack(errors.New("could not be flushed"))
		c.trusts(t)
	})
}

// TestBreakBeforeTheOpenIsKnown takes rights that have just been granted, before
// anybody has been told of them.
func TestBreakBeforeTheOpenIsKnown(t *testing.T) {
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		c := make(told, 64)
		o := l.open(t, "file", allRights, c)
		f := o.File.(*lastingFile)
		// What the listener of an open hears before that has found its file.
		early := &listener{s: f.s}
		acked := make(chan error, 1)
		early.Rights(remote.Change{Rights: remote.CacheRead, Epoch: 50, Ack: func(err error) { acked <- err }})
		c.nothing(t, "it belongs to no file yet")
		early.of(f)
		ch := <-c
		if ch.Rights != remote.CacheRead || ch.Epoch <= o.Epoch || len(acked) > 0 {
			t.Errorf("told of %+v, acknowledged %d times", ch, len(acked))
		}
		ch.Ack(nil)
		check(t, "Ack", <-acked, nil)
	})
}

// TestClosedWhileItComesBack leaves no handle.
func TestClosedWhileItComesBack(t *testing.T) {
	lasting(t, smbtest.Config{}, ClientConfig{}, func(t *testing.T, l *lab) {
		o := l.open(t, "file", 0, nil)
		l.cut()
		l.faults(slow("CREATE"))
		asked := make(chan error)
		go func() { _, err := o.File.GetAttr(t.Context(), o.Open); asked <- err }()
		synctest.Wait()
		if err := o.Open.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-asked; err == nil || errors.Is(err, smbconn.ErrDisconnected) {
			t.Errorf("GetAttr of a closed file: %v", err)
		}
		l.faults(func(smbtest.Request) smbtest.Fault { return smbtest.Fault{} })
		if err := l.sh.Remove(t.Context(), remote.At{Name: "file"}, false); err != nil {
			t.Error(err)
		}
		if _, err := l.srv.ReadFile("file"); err == nil {
			t.Error("a file that was removed is still open")
		}
	})
}
