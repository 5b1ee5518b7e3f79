//go:build !unix || aix || solaris || illumos

package files

import (
	"io/fs"
	"os"
)

const renamesOpen = false

func lock(*os.File) {}

// removeUnlocked leaves the file alone: without locks, it may be in use by
// another process.
func removeUnlocked(string) {}

// ownAs does nothing: these systems have other owners.
func ownAs(*os.File, fs.FileInfo) {}

// SyncDir does nothing: directories cannot be synced here.
func SyncDir(string) error { return nil }
