// Package reread keeps what was made of files up to date while they change.
package reread

import (
	"os"
	"sync"
	"time"
)

// Files is what was made of some files. It is made anew when one of them has changed and is asked for.
type Files[T any] struct {
	names []string // an empty one is left out
	load  func() (T, error)

	mu    sync.Mutex
	now   T
	has   bool
	read  []stamp // of the files that now was made of
	again func(error)
	told  string // the error that again was called with last
}

// stamp tells one state of a file from another.
type stamp struct {
	time time.Time
	size int64
}

// Open makes something of files.
func Open[T any](load func() (T, error), names ...string) (*Files[T], error) {
	f := &Files[T]{names: names, load: load, again: func(error) {}}
	_, err := f.Now()
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Tell has f called when files were read again; with an error if they could not be, once for each error.
func (f *Files[T]) Tell(again func(error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.again = again
}

// Now returns what files are made to. If they cannot be read, or do not fit each other, that is what they were made
// to last.
func (f *Files[T]) Now() (T, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	stamps, err := f.stamps()
	if err == nil && f.has && equal(stamps, f.read) {
		return f.now, nil
	}
	var next T
	if err == nil {
		next, err = f.load()
	}
	switch {
	case !f.has && err != nil:
		return f.now, err
	case f.has && err == nil:
		f.told = ""
		f.again(nil)
	case f.has && err.Error() != f.told:
		f.told = err.Error()
		f.again(err)
	}
	if err == nil {
		f.now, f.read, f.has = next, stamps, true
	}
	return f.now, nil
}

func (f *Files[T]) stamps() ([]stamp, error) {
	all := make([]stamp, len(f.names))
	for i, name := range f.names {
		if name == "" {
			continue
		}
		fi, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		all[i] = stamp{fi.ModTime(), fi.Size()}
	}
	return all, nil
}

func equal(a, b []stamp) bool {
	for i := range a {
		if !a[i].time.Equal(b[i].time) || a[i].size != b[i].size {
			return false
		}
	}
	return true
}
