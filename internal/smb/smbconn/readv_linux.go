package smbconn

import "golang.org/x/sys/unix"

const canReadv = true

func readv(fd int, p [][]byte) (int, error) {
	if len(p) == 1 {
		return unix.Read(fd, p[0])
	}
	return unix.Readv(fd, p)
}
