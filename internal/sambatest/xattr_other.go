//go:build !linux

package sambatest

func userXattrs(string) bool { return false }
