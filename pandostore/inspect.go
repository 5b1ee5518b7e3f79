package pandostore

import (
	"fmt"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/disk"
	"github.com/pando-index/pando/internal/log"
)

// Info is what is in the folder of a store.
type Info struct {
	Path       string          `json:"path"`
	Key        string          `json:"key"`                  // types, as pando.FileInfo has them
	Value      string          `json:"value"`                //
	Note       string          `json:"note,omitempty"`       // of the newest checkpoint, as Note gives it
	Segments   int             `json:"segments"`             // of the log behind the checkpoint
	LogBytes   int64           `json:"logBytes"`             // of their files, which are made ahead
	Checkpoint *pando.FileInfo `json:"checkpoint,omitempty"` // the newest; nil if there is none
}

// Inspect returns what is in the folder of a store, also while another process changes it.
// It reads names and heads of files alone, and needs no types.
func Inspect(path string) (info Info, err error) {
	err = steady(path, func(r *recovery) error {
		info = Info{Path: path}
		return r.inspect(&info)
	})
	return info, err
}

func (r *recovery) inspect(info *Info) error {
	if err := r.look(); err != nil {
		return err
	}
	if len(r.segments) == 0 {
		return r.empty()
	}
	if err := r.readInfo(); err != nil {
		return err
	}
	info.Key, info.Value, info.Segments = r.info.Key, r.info.Value, len(r.segments)
	for _, n := range r.segments {
		size, err := r.sizeOf(log.Name(n))
		if err != nil {
			return err
		}
		info.LogBytes += size
	}
	if r.chosen == "" {
		return nil
	}
	c, err := pando.Inspect(r.dir.Path(r.chosen))
	info.Checkpoint = &c
	if err == nil {
		info.Note, err = r.checkHead()
	}
	return err
}

// empty is the error for a folder without anything in it.
func (r *recovery) empty() error {
	return fmt.Errorf("%w: %s is no store: it is empty", pando.ErrFile, folderName(r.dir))
}

// Verify reads a whole store and checks it: the newest checkpoint as pando.Verify does, and each
// frame of the log behind it. It returns what it has found. It needs no types, changes
// nothing, and returns ErrLocked while another process has the store open.
func Verify(path string) (Found, error) {
	dir, err := disk.Existing(path)
	if err != nil {
		return Found{}, noFolder(err)
	}
	lock, err := dir.Lock()
	if err != nil {
		return Found{}, translate(dir, err)
	}
	defer lock.Close()
	r := recovery{core: &core{dir: dir}}
	err = r.verify()
	return r.found, translate(dir, err)
}

func (r *recovery) verify() error {
	if err := r.look(); err != nil {
		return err
	}
	if len(r.segments) == 0 {
		return r.empty()
	}
	if err := r.readInfo(); err != nil {
		return err
	}
	if err := r.verifyCheckpoint(); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	return r.replay()
}

// verifyCheckpoint checks the checkpoint that was chosen, if there is one.
func (r *recovery) verifyCheckpoint() error {
	if r.chosen == "" {
		return nil
	}
	if _, err := r.checkHead(); err != nil {
		return err
	}
	path := r.dir.Path(r.chosen)
	if path == "" {
		return nil
	}
	if err := pando.Verify(path); err != nil {
		return r.ofCheckpoint(err)
	}
	info, err := pando.Inspect(path)
	r.found.Checkpoint, r.found.CheckpointEntries, r.found.CheckpointBytes = r.chosen, info.Len, info.Bytes
	return r.ofCheckpoint(err)
}
