//go:build unix && !aix && !solaris

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock locks a file until it is closed or the process ends, and reports whether it
// could: another process may have it.
func lock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// unlock gives up the lock of a file before it is closed. A process that is just being started
// by this one has all of its files until it runs its own program, and with them their locks.
func unlock(f *os.File) { unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// lockFolder locks the folder itself beside its lock file, which somebody may remove while a
// process has it. It returns false if another has locked the folder, and nil where
// folders cannot be locked.
func lockFolder(path string) (*os.File, bool) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, true
	}
	if ok, err := lock(dir); err != nil || !ok {
		dir.Close()
		return nil, err != nil
	}
	return dir, true
}
