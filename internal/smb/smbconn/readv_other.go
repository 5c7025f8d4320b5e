//go:build !linux

package smbconn

import "syscall"

const canReadv = false

func readv(int, [][]byte) (int, error) { return 0, syscall.ENOSYS }
