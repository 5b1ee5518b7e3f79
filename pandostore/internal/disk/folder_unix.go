//go:build unix

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// noFollow keeps a file from being opened through a link.
const noFollow = unix.O_NOFOLLOW

// syncDir makes the names in a folder durable. Some file systems cannot sync folders and
// return an error; there they are as durable as the file system makes them.
func syncDir(path string) error {
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
