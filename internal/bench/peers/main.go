// Command peers moves files with github.com/cloudsoda/go-smb2, as a program
// that uses the library well would, for "pagewire bench peers" to measure. It
// is a module of its own so that nothing else depends on that library.
//
//	peers [flags] read NAME          throw a file of the share away
//	peers [flags] write FILE NAME    copy a local file to the share
//	peers [flags] upload DIR NAME    copy a local tree to the share
//	peers [flags] download NAME DIR  copy a tree of the share here
//	peers [flags] list NAME          print the names in a folder
//
// The password is taken from PASSWD.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/cloudsoda/go-smb2"
)

// piece is the size of a request when several are in flight.
const piece = 1 << 20

// driver works on a mounted share.
type driver struct {
	*smb2.Share
	parallel int // requests or files at a time; 0: io.Copy
}

func main() {
	addr := flag.String("addr", "", "host:port of the server")
	share := flag.String("share", "", "`name` of the share")
	user := flag.String("user", "", "whom to log on as")
	parallel := flag.Int("parallel", 0, "`N` requests or files at a time; 0: io.Copy")
	flag.Parse()
	err := mounted(*addr, *share, *user, func(s *smb2.Share) error {
		return driver{s, *parallel}.run(flag.Args())
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// mounted calls f with a share.
func mounted(addr, share, user string, f func(*smb2.Share) error) error {
	d := smb2.Dialer{Initiator: &smb2.NTLMInitiator{User: user, Password: os.Getenv("PASSWD")}}
	session, err := d.Dial(context.Background(), addr)
	if err != nil {
		return err
	}
	defer session.Logoff()
	s, err := session.Mount(share)
	if err != nil {
		return err
	}
	defer s.Umount()
	return f(s)
}

func (d driver) run(args []string) error {
	if len(args) == 0 {
		args = []string{""}
	}
	switch op, args := args[0], args[1:]; {
	case op == "read" && len(args) == 1:
		return d.read(args[0])
	case op == "write" && len(args) == 2:
		return d.write(args[0], args[1])
	case op == "upload" && len(args) == 2:
		return d.upload(args[0], args[1])
	case op == "download" && len(args) == 2:
		return d.download(args[0], args[1])
	case op == "list" && len(args) == 1:
		return d.list(args[0])
	}
	return errors.New("usage: peers [flags] read|write|upload|download|list ...")
}

func (d driver) list(name string) error {
	entries, err := d.ReadDir(name)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(os.Stdout)
	for _, e := range entries {
		fmt.Fprintln(out, e.Name())
	}
	return out.Flush()
}

func (d driver) read(name string) error {
	f, err := d.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if d.parallel == 0 {
		_, err := io.Copy(io.Discard, f)
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return d.pieces(info.Size(), func(buf []byte, off int64) error {
		_, err := f.ReadAt(buf, off)
		return err
	})
}

func (d driver) write(local, name string) error {
	from, err := os.Open(local)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := d.Create(name)
	if err != nil {
		return err
	}
	if d.parallel == 0 {
		_, err = io.Copy(to, from)
		return errors.Join(err, to.Close())
	}
	info, err := from.Stat()
	if err != nil {
		return err
	}
	err = d.pieces(info.Size(), func(buf []byte, off int64) error {
		if _, err := from.ReadAt(buf, off); err != nil {
			return err
		}
		_, err := to.WriteAt(buf, off)
		return err
	})
	return errors.Join(err, to.Close())
}

// pieces calls move for each piece of a file, several at a time.
func (d driver) pieces(size int64, move func(buf []byte, off int64) error) error {
	var next atomic.Int64
	return d.workers(func() error {
		buf := make([]byte, piece)
		for {
			off := next.Add(piece) - piece
			if off >= size {
				return nil
			}
			if err := move(buf[:min(piece, size-off)], off); err != nil {
				return err
			}
		}
	})
}

// workers runs as many of f as the flag says and returns their errors.
func (d driver) workers(f func() error) error {
	var wg sync.WaitGroup
	errs := make([]error, max(d.parallel, 1))
	for i := range errs {
		wg.Go(func() { errs[i] = f() })
	}
	wg.Wait()
	return errors.Join(errs...)
}

// each calls copy for each name, several at a time.
func (d driver) each(names []string, copy func(name string) error) error {
	var next atomic.Int64
	return d.workers(func() error {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(names) {
				return nil
			}
			if err := copy(names[i]); err != nil {
				return err
			}
		}
	})
}

func (d driver) upload(local, name string) error {
	var files []string
	err := filepath.WalkDir(local, func(p string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(local, p)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return d.Mkdir(path.Join(name, filepath.ToSlash(rel)), 0o755)
		}
		files = append(files, rel)
		return nil
	})
	if err != nil {
		return err
	}
	return d.each(files, func(rel string) error {
		data, err := os.ReadFile(filepath.Join(local, rel))
		if err != nil {
			return err
		}
		return d.WriteFile(path.Join(name, filepath.ToSlash(rel)), data, 0o644)
	})
}

func (d driver) download(name, local string) error {
	var files []string
	var walk func(rel string) error
	walk = func(rel string) error {
		if err := os.Mkdir(filepath.Join(local, filepath.FromSlash(rel)), 0o755); err != nil {
			return err
		}
		entries, err := d.ReadDir(path.Join(name, rel))
		if err != nil {
			return err
		}
		for _, e := range entries {
			p := path.Join(rel, e.Name())
			if !e.IsDir() {
				files = append(files, p)
			} else if err := walk(p); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(""); err != nil {
		return err
	}
	return d.each(files, func(rel string) error {
		data, err := d.ReadFile(path.Join(name, rel))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(local, filepath.FromSlash(rel)), data, 0o644)
	})
}
