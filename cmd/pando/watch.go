package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"

	"github.com/pando-index/pando/internal/table"
)

// watched are the index files that this command has open. They are mapped: a write
// to one changes the command's data, and a read of a part that was cut off faults.
var watched watchList

// watchList is files as they were when they were opened.
type watchList struct {
	mu    sync.Mutex
	files map[string]os.FileInfo
}

// add starts to watch a file.
func (w *watchList) add(path string) {
	if fi, err := os.Stat(path); err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.files == nil {
			w.files = map[string]os.FileInfo{}
		}
		w.files[path] = fi
	}
}

// reset forgets all files.
func (w *watchList) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.files = nil
}

// check returns an error if a file was written over in place. One that another
// file has replaced is unchanged.
func (w *watchList) check() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for path, was := range w.files {
		now, err := os.Stat(path)
		if err == nil && os.SameFile(was, now) && (now.Size() != was.Size() || !now.ModTime().Equal(was.ModTime())) {
			return fmt.Errorf("%s was written over while it was read, so that no answer can be trusted; write another file and rename it, as pando build does", path)
		}
	}
	return nil
}

// fault makes an error of a panic that comes from a file which changed, or which is
// damaged, and raises any other again.
func (w *watchList) fault(v any) error {
	if err := w.check(); err != nil {
		return err
	}
	if e, ok := v.(interface {
		runtime.Error
		Addr() uintptr
	}); ok {
		return fmt.Errorf("a file that is mapped cannot be read any more: %w", e)
	}
	if e, ok := v.(*table.Error); ok { // values that cannot be passed on
		return e
	}
	panic(v)
}
