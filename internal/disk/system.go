package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pando-index/pando/internal/files"
)

// lockName is the file that a process locks while it has a folder. Its text says
// which process that is.
const lockName = "LOCK"

// system is a folder of the operating system.
type system struct{ path string }

// Dir returns a folder of the operating system. It makes it, and those above, if they
// are not there; they are durable when it returns.
func Dir(path string) (Folder, error) {
	if path == "" {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("no name")}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := makeAll(path); err != nil {
		return nil, err
	}
	return system{path}, nil
}

// Existing returns a folder of the operating system that is there, to be read: it may be
// one that nobody can write to, and no file for the lock is made.
func Existing(path string) (Folder, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not a folder")}
	}
	path, err = filepath.Abs(path)
	return readOnly{system{path}}, err
}

// readOnly is a folder that is read and not changed.
type readOnly struct{ system }

func (d readOnly) Open(name string) (File, error) { return opened(os.Open(d.Path(name))) }

func (d readOnly) Lock() (io.Closer, error) {
	l, err := d.takeLock(0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, errReadOnly) {
		folder, ok := lockFolder(d.path)
		if !ok {
			return nil, &Locked{d.path, ""}
		}
		return held{folder: folder}, nil
	}
	return l, err
}

// makeAll makes a folder and those above it, and syncs the folder that has each.
func makeAll(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.IsDir():
		return &fs.PathError{Op: "open", Path: path, Err: errors.New("not a folder")}
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	above := filepath.Dir(path)
	if err := makeAll(above); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return files.SyncDir(above)
}

func (d system) Path(name string) string { return filepath.Join(d.path, name) }

func (d system) Names() (names []string, err error) {
	entries, err := os.ReadDir(d.path)
	for _, e := range entries {
		if e.Name() != lockName {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (d system) Create(name string) (File, error) {
	return opened(os.OpenFile(d.Path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666))
}

func (d system) Open(name string) (File, error) {
	return opened(os.OpenFile(d.Path(name), os.O_RDWR, 0))
}

func (d system) Rename(from, to string) error { return os.Rename(d.Path(from), d.Path(to)) }
func (d system) Remove(name string) error     { return os.Remove(d.Path(name)) }
func (d system) Sync() error                  { return files.SyncDir(d.path) }

func (d system) Lock() (io.Closer, error) { return d.takeLock(os.O_CREATE) }

// lockText is how the text of a lock begins.
const lockText = "process "

// takeLock is Lock, with a flag that says whether the file may be made. The file may be
// removed by somebody while it is being locked, and then says nothing: it tries again.
func (d system) takeLock(flag int) (io.Closer, error) {
	for {
		f, err := os.OpenFile(d.Path(lockName), os.O_RDWR|noFollow|flag, 0o666)
		if err != nil {
			return nil, err
		}
		l, err := d.lockBy(f)
		if l != nil || err != nil {
			return l, err
		}
	}
}

// lockBy locks the folder by its open lock file. It returns nil if that is no longer
// there.
func (d system) lockBy(f *os.File) (l io.Closer, err error) {
	done := false
	defer func() {
		if !done {
			held{file: f}.Close()
		}
	}()
	b, err := io.ReadAll(io.LimitReader(f, 512))
	if err != nil {
		return nil, err
	}
	text := string(b)
	if !strings.HasPrefix(text, lockText) && !strings.HasPrefix(lockText, text) {
		return nil, &Foreign{d.Path(lockName)}
	}
	ok, err := lock(f)
	if err != nil {
		return nil, fmt.Errorf("cannot lock %s: %w", d.path, err)
	}
	if !ok {
		return nil, &Locked{d.path, strings.TrimSpace(text)}
	}
	mine, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if there, err := os.Lstat(d.Path(lockName)); err != nil || !os.SameFile(mine, there) {
		return nil, nil
	}
	folder, ok := lockFolder(d.path)
	if !ok {
		return nil, &Locked{d.path, ""} // by one whose lock file was removed
	}
	host, _ := os.Hostname()
	text = fmt.Sprintf("%s%d on %s (%s)\n", lockText, os.Getpid(), host, filepath.Base(os.Args[0]))
	if _, err := f.WriteAt([]byte(text), 0); err == nil { // on a full disk the lock counts without its text
		f.Truncate(int64(len(text)))
	}
	done = true
	return held{f, folder}, nil
}

// held is the lock of a folder: files that are locked, each of which may be nil.
type held struct{ file, folder *os.File }

func (h held) Close() (err error) {
	for _, f := range []*os.File{h.folder, h.file} {
		if f != nil {
			unlock(f)
			err = f.Close()
		}
	}
	return err
}

// file is a file of the operating system.
type file struct{ *os.File }

func opened(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

func (f file) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f file) Sync() error { return syncData(f.File) }
