//go:build unix

package pandoserver

import (
	"syscall"
	"testing"
)

// mostFiles returns how many files this process may have open.
func mostFiles(t *testing.T) int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		t.Fatal(err)
	}
	return int(min(l.Cur, 1<<20))
}
