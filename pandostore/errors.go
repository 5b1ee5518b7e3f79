package pandostore

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/disk"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/log"
)

// Errors of a store wrap one of these, or one of package pando's: pando.ErrFile for damage,
// and for a folder that is no store, pando.ErrVersion, pando.ErrType, pando.ErrClosed,
// pando.ErrMemoryLimit.
var (
	// ErrLocked says that another process has the store open, and which.
	ErrLocked = errors.New("pandostore: in use")

	// ErrReadOnly says that the log could not be written, or synced. From then on a store
	// takes no changes; all that it acknowledged is in the log, and Open finds it there.
	ErrReadOnly = errors.New("pandostore: read-only after a failure")
)

// translate returns an error of the floors below its public name.
func translate(dir disk.Folder, err error) error {
	var bad *log.Bad
	var newer *log.Newer
	var locked *disk.Locked
	var foreign *disk.Foreign
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		return fmt.Errorf("%w: %s: %w; pandostore.Salvage saves everything up to there", pando.ErrFile, folderName(dir), err)
	case errors.As(err, &foreign):
		return fmt.Errorf("%w: %w", pando.ErrFile, err)
	case errors.As(err, &newer):
		return fmt.Errorf("%w: %s: %w; use a newer Pando", pando.ErrVersion, folderName(dir), err)
	case errors.As(err, &locked):
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return index.Public(err)
}

// folderName returns the name of a folder for messages.
func folderName(dir disk.Folder) string {
	if dir == nil {
		return "the store"
	}
	if p := dir.Path(""); p != "" {
		return p
	}
	return "the store"
}

// noFolder is the error of a folder that cannot be opened.
func noFolder(err error) error { return fmt.Errorf("pandostore: cannot open the folder: %w", err) }
