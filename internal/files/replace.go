package files

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
// so one without a lock has no writer. On systems without such locks it stays.
//
// The new file has the mode of the old one, and its owner and group where this
// process may give files away. Links stay, and their target is replaced, or
// made.
func Replace(path string, write func(io.Writer) error, ready func()) error {
	path, old, err := target(path)
	if err != nil {
		return err
	}
	removeStale(path)
	t, err := newTemporary(path, old)
	if err != nil {
		return err
	}
	defer t.discard()
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
	if err := SyncDir(filepath.Dir(path)); err != nil {
		return fmt.Errorf("the file is written, but its directory cannot be synced: %w", err)
	}
	return nil
}

// mostLinks is how many links in a row are followed, as many as systems do.
const mostLinks = 40

// target follows links to the file that is to be replaced, or made where the last
// link leads nowhere yet, and returns its FileInfo if it exists, else nil. Only
// regular files are replaced.
func target(path string) (string, fs.FileInfo, error) {
	if path == "" {
		return "", nil, &fs.PathError{Op: "save", Path: path, Err: errors.New("no name")}
	}
	for at, links := path, 0; ; links++ {
		// The folder first: the meaning of ".." in a link depends on where the link really
		// is.
		dir, name := filepath.Split(at)
		if dir == "" {
			dir = "."
		}
		if dir, err := filepath.EvalSymlinks(dir); err == nil && name != ".." {
			at = filepath.Join(dir, name)
		}
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return at, nil, nil
		case err != nil:
			return "", nil, err
		case info.Mode().IsRegular():
			return at, info, nil
		case info.Mode()&fs.ModeSymlink == 0:
			return "", nil, &fs.PathError{Op: "save", Path: at, Err: errors.New("not a regular file; write into it with WriteTo")}
		case links == mostLinks:
			return "", nil, &fs.PathError{Op: "save", Path: path, Err: errors.New("too many links")}
		}
		to, err := os.Readlink(at)
		if err != nil {
			return "", nil, err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Dir(at) + string(filepath.Separator) + to // as it is: a folder in it may be a link
		}
		at = to
	}
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

// newTemporary makes a locked temporary file, with the owner and the mode of what
// it is to replace. It tries again if another process took the file for a stale one
// before it was locked.
func newTemporary(path string, old fs.FileInfo) (*temporary, error) {
	mode := fs.FileMode(0o666)
	if old != nil {
		mode = 0o600 // nobody else's before it is like the old one
	}
	for range 100 {
		name := filepath.Join(filepath.Dir(path), fmt.Sprintf("%s%016x.tmp", prefix(path), rand.Uint64()))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		lock(f)
		if isAt(f, name) {
			t := &temporary{File: f}
			if err := t.likeOld(old); err != nil {
				t.discard()
				return nil, err
			}
			return t, nil
		}
		f.Close()
	}
	return nil, &fs.PathError{Op: "save", Path: path, Err: errors.New("temporary files vanish as soon as they are made")}
}

// likeOld gives the file the mode of what it replaces, and its owner where this process
// may. A file system that has one mode for all files need not take it.
func (t *temporary) likeOld(old fs.FileInfo) error {
	if old == nil {
		return nil
	}
	ownAs(t.File, old)
	err := t.Chmod(old.Mode().Perm())
	if err == nil {
		return nil
	}
	if now, statErr := t.Stat(); statErr == nil && now.Mode().Perm() == old.Mode().Perm() {
		return nil
	}
	return err
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
