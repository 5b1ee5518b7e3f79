//go:build aix || solaris

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock locks a file until it is closed or the process ends, and reports whether it
// could: another process may have it. These locks are between processes: one that opens
// a store twice is not told.
func lock(f *os.File) (bool, error) {
	err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// lockFolder does nothing: folders cannot be locked here.
func lockFolder(string) (*os.File, bool) { return nil, true }

// unlock does nothing: the lock goes with the file.
func unlock(*os.File) {}
