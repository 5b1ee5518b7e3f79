//go:build !unix || aix || solaris || illumos

package snapshot

import "os"

const renamesOpen = false

func lock(*os.File) {}

// removeUnlocked leaves the file: here it cannot be known whose it is.
func removeUnlocked(string) {}

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }
