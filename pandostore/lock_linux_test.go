package pandostore

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A store can be opened as soon as it was closed, though a process that is just being started has
// the files of this one, the lock among them.
func TestLockInherited(t *testing.T) {
	dir := t.TempDir()
	s, err := Open[int, int](dir)
	try(t, err)
	fds, err := os.ReadDir("/proc/self/fd")
	try(t, err)
	inherited := 0
	for _, e := range fds {
		to, _ := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if to != dir && !strings.HasPrefix(to, dir+"/") {
			continue
		}
		n, err := strconv.Atoi(e.Name())
		try(t, err)
		n, err = syscall.Dup(n)
		try(t, err)
		defer syscall.Close(n)
		inherited++
	}
	if inherited < 2 {
		t.Fatalf("%d files of the store are open", inherited)
	}
	try(t, s.Close())
	s, err = Open[int, int](dir)
	try(t, err, s.Close())
}
