// Package disk is the part of a file system that a store uses: one folder, its files,
// and what makes both durable. There is the system's, and in package crash one in
// memory that forgets what was not synced.
package disk

import "io"

// Folder is a folder with files and no folders below.
type Folder interface {
	// Names returns the names of the files.
	Names() ([]string, error)
	// Create makes a file, which must not be there, to be read and written.
	Create(name string) (File, error)
	// Open opens a file to be read and written.
	Open(name string) (File, error)
	// Rename gives a file another name, which may be that of a file to be replaced.
	Rename(from, to string) error
	Remove(name string) error
	// Sync makes the names of files durable: what was made, renamed and removed. The
	// content of a file is durable by its own Sync alone.
	Sync() error
	// Lock takes the folder for this process until the result is closed. It returns a
	// Locked if another has it, and a Foreign if it has a file in the place of the lock.
	Lock() (io.Closer, error)
	// Path returns where the system has a file, and "" where it knows nothing of it.
	Path(name string) string
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Sync makes all that was written durable. After an error nobody knows what is.
	Sync() error
}

// Foreign says that a file has the name of a lock, and is none: it is left as it is.
type Foreign struct{ Path string }

func (f *Foreign) Error() string { return f.Path + " is not the lock of a store" }

// Locked says that another process has a folder, and which.
type Locked struct{ Path, Owner string }

func (l *Locked) Error() string {
	if l.Owner == "" {
		return l.Path + " is in use by another process"
	}
	return l.Path + " is in use by " + l.Owner
}
