package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
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
// one that nobody can write to, and its lock is taken only where it has had one.
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
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return io.NopCloser(nil), nil // no process has it, or none can
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
	return syncDir(above)
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
func (d system) Sync() error                  { return syncDir(d.path) }

func (d system) Lock() (io.Closer, error) { return d.takeLock(os.O_CREATE) }

func (d system) takeLock(flag int) (io.Closer, error) {
	f, err := os.OpenFile(d.Path(lockName), os.O_RDWR|flag, 0o666)
	if err != nil {
		return nil, err
	}
	ok, err := lock(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", d.path, err)
	}
	if !ok {
		text, _ := io.ReadAll(io.LimitReader(f, 512))
		f.Close()
		return nil, &Locked{d.path, strings.TrimSpace(string(text))}
	}
	host, _ := os.Hostname()
	err = f.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintf(f, "process %d on %s (%s)\n", os.Getpid(), host, filepath.Base(os.Args[0]))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil // the lock goes with the file
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
