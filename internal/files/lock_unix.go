//go:build unix && !aix && !solaris && !illumos

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// renamesOpen reports whether an open file can be renamed.
const renamesOpen = true

// lock marks a file as being written, until it is closed or its process ends.
// On a file system without locks, removeUnlocked cannot lock either, so it
// removes no other process's file.
func lock(f *os.File) { unix.Flock(int(f.Fd()), unix.LOCK_EX) }

// removeUnlocked removes a file that nobody is writing.
func removeUnlocked(name string) {
	f, err := os.OpenFile(name, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && isAt(f, name) {
		os.Remove(name)
	}
}

// ownAs gives a file the owner and group of another, or the group alone, as far as
// this process may.
func ownAs(f *os.File, old fs.FileInfo) {
	if s, ok := old.Sys().(*syscall.Stat_t); ok && f.Chown(int(s.Uid), int(s.Gid)) != nil {
		f.Chown(-1, int(s.Gid))
	}
}

// SyncDir makes the names in a folder durable. Some file systems cannot sync folders and
// return an error; there they are as durable as the file system makes them.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
		return err
	}
	return nil
}
