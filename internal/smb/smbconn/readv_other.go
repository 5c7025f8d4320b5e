//go:build !linux

package smbconn

import "syscall"

const canReadv = false

func setLowWater(int, int) {}

func readv(int, [][]byte) (int, error) { return 0, syscall.ENOSYS }
