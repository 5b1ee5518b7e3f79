//go:build unix && !aix && !solaris && !illumos

package files

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What replaces a file has its owner, where that is allowed.
func TestOwnerOfReplacedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 12345, 54321); err != nil {
		t.Skip(err)
	}
	if err := Replace(path, content("new"), nothing); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); s.Uid != 12345 || s.Gid != 54321 || info.Mode() != 0o600 {
		t.Errorf("owner %d, group %d, mode %v", s.Uid, s.Gid, info.Mode())
	}
}
