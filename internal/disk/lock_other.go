//go:build !windows && !unix

package disk

import "os"

// lock always succeeds: this system has no such locks.
func lock(*os.File) (bool, error) { return true, nil }

// unlock does nothing: the lock goes with the file.
func unlock(*os.File) {}
