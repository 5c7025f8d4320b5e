package sambatest

import "syscall"

// userXattrs reports whether files in dir can have extended attributes, which
// is where smbd keeps DOS attributes. tmpfs has had them since Linux 6.6.
func userXattrs(dir string) bool {
	return syscall.Setxattr(dir, "user.pagewire", []byte{1}, 0) == nil && syscall.Removexattr(dir, "user.pagewire") == nil
}
