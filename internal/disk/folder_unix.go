//go:build unix

package disk

import "golang.org/x/sys/unix"

// noFollow keeps a file from being opened through a link.
const noFollow = unix.O_NOFOLLOW

// errReadOnly is the error of a file system that nobody can write to.
const errReadOnly = unix.EROFS
