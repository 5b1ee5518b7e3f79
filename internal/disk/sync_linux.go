package disk

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes the content of a file durable, and its length, but not the times that it
// was written at: those cost a second write.
func syncData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err == unix.EINTR {
			continue
		}
		return os.NewSyscallError("fdatasync", err)
	}
}
