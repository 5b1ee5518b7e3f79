package snapshot

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// Replace replaces the file at path atomically: write writes a temporary file
// in the same directory, which is synced and renamed, and then the directory
// is synced. ready is called when the new file is complete and the old one
// still in place. If anything fails, or panics, the temporary file is removed
// and path is unchanged.
//
// A process that is killed leaves its temporary file behind. The next Replace
// of the same path removes it: a temporary file is locked while it is written,
// so one without a lock belongs to nobody. On systems without such locks it
// stays.
func Replace(path string, write func(io.Writer) error, ready func()) error {
	path, mode, err := target(path)
	if err != nil {
		return err
	}
	removeStale(path)
	t, err := newTemporary(path)
	if err != nil {
		return err
	}
	defer t.discard()
	if mode != 0 { // like the old file; failing to set it does no harm
		t.Chmod(mode)
	}
	if err := write(t); err != nil {
		return err
	}
	if err := t.Sync(); err != nil {
		return err
	}
	ready()
	if err := t.renameTo(path); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("the file is written, but its directory cannot be synced: %w", err)
	}
	return nil
}

// target follows links to the file that is to be replaced, and returns its
// mode if it exists. Only regular files are replaced.
func target(path string) (string, fs.FileMode, error) {
	if path == "" {
		return "", 0, &fs.PathError{Op: "save", Path: path, Err: errors.New("no name")}
	}
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, 0, nil
	case err != nil:
		return "", 0, err
	case !info.Mode().IsRegular():
		return "", 0, &fs.PathError{Op: "save", Path: path, Err: errors.New("not a regular file; write into it with WriteTo")}
	}
	return path, info.Mode().Perm(), nil
}

// temporary is a file that is being written.
type temporary struct {
	*os.File
	renamed bool
}

// prefix returns the start of the names of a path's temporary files. It
// contains a checksum rather than the name, which may be as long as names can
// be.
func prefix(path string) string {
	return fmt.Sprintf(".pando-save-%08x-", crc32.Checksum([]byte(filepath.Base(path)), castagnoli))
}

// newTemporary makes a locked temporary file. It tries again if another
// process took the file for a stale one before it was locked.
func newTemporary(path string) (*temporary, error) {
	for range 100 {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf("%s%016x.tmp", prefix(path), rand.Uint64()))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		lock(f)
		if isAt(f, name) {
			return &temporary{File: f}, nil
		}
		f.Close()
	}
	return nil, &fs.PathError{Op: "save", Path: path, Err: errors.New("temporary files vanish as soon as they are made")}
}

// isAt reports whether an open file still exists under its name.
func isAt(f *os.File, name string) bool {
	there, err := os.Lstat(name)
	if err != nil {
		return false
	}
	here, err := f.Stat()
	return err == nil && os.SameFile(here, there)
}

// renameTo renames the file to path. If possible, the lock is held until then:
// only some systems can rename an open file.
func (t *temporary) renameTo(path string) error {
	if !renamesOpen {
		if err := t.Close(); err != nil {
			return err
		}
	}
	if err := os.Rename(t.Name(), path); err != nil {
		return err
	}
	t.renamed = true
	if renamesOpen {
		return t.Close() // already synced: nothing can be lost
	}
	return nil
}

// discard removes the file unless it has been renamed.
func (t *temporary) discard() {
	if !t.renamed {
		t.Close()
		os.Remove(t.Name())
	}
}

// removeStale removes the temporary files that killed processes have left for
// a path.
func removeStale(path string) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return
	}
	defer dir.Close()
	start := prefix(path)
	for {
		names, err := dir.Readdirnames(1000)
		for _, name := range names {
			if strings.HasPrefix(name, start) && strings.HasSuffix(name, ".tmp") {
				removeUnlocked(filepath.Join(dir.Name(), name))
			}
		}
		if err != nil || len(names) == 0 {
			return
		}
	}
}
