package smbconn

import "golang.org/x/sys/unix"

const canReadv = true

// setLowWater is an optimization, so it may fail.
func setLowWater(fd, n int) { unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, n) }

func readv(fd int, p [][]byte) (int, error) {
	if len(p) == 1 {
		return unix.Read(fd, p[0])
	}
	return unix.Readv(fd, p)
}
