//go:build !linux

package disk

import "os"

// syncData makes the content of a file durable.
func syncData(f *os.File) error { return f.Sync() }
