package store

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes what was written to a file durable.
func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// evict makes the system forget what it has of a file in memory, so that it is read from
// the disk.
func evict(f *os.File) error { return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED) }
