package pandocluster

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/pando-index/pando/internal/files"
)

// FolderOf returns a folder of the operating system as Files. It is made with its first file, in a folder that is there; and goes
// with its last one, if it was made.
func FolderOf(path string) Files { return &folder{path: path} }

type folder struct {
	path string

	mu   sync.Mutex
	made bool
}

func (f *folder) make() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := os.Mkdir(f.path, 0o777)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	f.made = f.made || err == nil
	return err
}

// Put implements Files.
func (f *folder) Put(ctx context.Context, name string, r io.Reader) error {
	if err := f.make(); err != nil {
		return err
	}
	to, err := os.OpenFile(filepath.Join(f.path, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		f.tidy()
		return err
	}
	_, err = io.Copy(to, r)
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close(), ctx.Err()); err == nil {
		err = errors.Join(files.SyncDir(f.path), files.SyncDir(filepath.Dir(f.path)))
	}
	if err != nil {
		err = errors.Join(err, f.Delete(ctx, name))
	}
	return err
}

// Get implements Files.
func (f *folder) Get(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(f.path, name))
}

// Delete implements Files.
func (f *folder) Delete(_ context.Context, name string) error {
	err := os.Remove(filepath.Join(f.path, name))
	f.tidy()
	return err
}

// tidy removes the folder if it was made, and is empty.
func (f *folder) tidy() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.made && os.Remove(f.path) == nil {
		f.made = false
	}
}
