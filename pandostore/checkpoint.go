package pandostore

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandostore/internal/disk"
	"github.com/pando-index/pando/pandostore/internal/log"
)

// A checkpoint is a file of Pando's whose name says where the log goes on: the first segment
// behind it, and the number of the first operation there.

// checkpointName returns the name of a checkpoint.
func checkpointName(segment, next uint64) string {
	return fmt.Sprintf("checkpoint-%016x-%016x.pando", segment, next)
}

// checkpointOf returns what the name of a checkpoint says.
func checkpointOf(name string) (segment, next uint64, ok bool) {
	text, _ := strings.CutPrefix(name, "checkpoint-")
	a, b, _ := strings.Cut(strings.TrimSuffix(text, ".pando"), "-")
	segment, err := strconv.ParseUint(a, 16, 64)
	next, err2 := strconv.ParseUint(b, 16, 64)
	return segment, next, err == nil && err2 == nil && checkpointName(segment, next) == name
}

// checkpointIfLong begins a checkpoint in the background if the log is as long as the last
// one.
func (c *core) checkpointIfLong() {
	k := &c.checkpoints
	if c.cfg.never || c.logLength() < max(c.cfg.checkpoint, k.bytes.Load()) || k.busy.Swap(true) {
		return
	}
	c.seq.mu.Lock()
	defer c.seq.mu.Unlock()
	if c.seq.refusal() != nil {
		return
	}
	c.background.Go(func() {
		defer k.busy.Store(false)
		err := c.writeCheckpoint()
		if errors.Is(err, pando.ErrClosed) {
			return
		}
		if err == nil {
			k.failed.Store(nil)
			return
		}
		k.failed.Store(&err)
		k.mark.Store(c.log.Written()) // to try again when the log has grown by as much
	})
}

// writeCheckpoint is Checkpoint. The steps are in this order, so that at any moment the
// folder holds a checkpoint and all of the log behind it:
//
//  1. the log goes on in a new segment, and the tree of that moment is taken;
//  2. the checkpoint is written and synced under another name, renamed, and the folder synced;
//  3. only then are the segments and checkpoints before it removed.
func (c *core) writeCheckpoint() error {
	k := &c.checkpoints
	k.mu.Lock()
	defer k.mu.Unlock()
	r := newRequest(marking)
	if err := c.do(r); err != nil {
		return err
	}
	defer r.mark.moment.Close()
	begin := c.log.Written()
	if mutant.On && mutant.Is("store: deleted early") {
		c.removeBefore(r.mark.segment, "")
	}
	name := checkpointName(r.mark.segment, r.mark.next)
	size, err := c.save(name, r.mark.moment)
	if err != nil {
		return fmt.Errorf("pandostore: cannot write a checkpoint: %w", err)
	}
	k.bytes.Store(size)
	k.found.Store(0)
	k.mark.Store(begin)
	k.written.Add(1)
	return c.removeBefore(r.mark.segment, name)
}

// save writes a checkpoint. It is durable when save returns.
func (c *core) save(name string, m moment) (size int64, err error) {
	temporary := name + log.Temporary
	f, err := c.dir.Create(temporary)
	if errors.Is(err, fs.ErrExist) { // of one that has failed
		if err = c.dir.Remove(temporary); err == nil {
			f, err = c.dir.Create(temporary)
		}
	}
	if err != nil {
		return 0, err
	}
	w := &paced{c: c, f: f}
	_, err = m.WriteTo(w)
	if err == nil && !(mutant.On && mutant.Is("store: checkpoint synced")) {
		err = f.Sync()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = c.dir.Rename(temporary, name)
	}
	if err == nil {
		err = c.syncNames()
	}
	if err != nil {
		c.dir.Remove(temporary)
	}
	return w.at, err
}

// syncNames makes the names in the folder durable.
func (c *core) syncNames() error {
	if mutant.On && mutant.Is("store: folder") {
		return nil
	}
	return c.dir.Sync()
}

// paced writes a checkpoint at a pace that leaves the disk to the log: it syncs a few
// megabytes at a time, so that a sync of the log never waits for more, and where
// the log has grown meanwhile it pauses for as long as that took.
type paced struct {
	c       *core
	f       disk.File
	at      int64 // written so far
	synced  int64
	begun   time.Time
	written int64 // length of the log then
}

// paceStep is the number of bytes that a checkpoint writes between two syncs.
const paceStep = 8 << 20

func (p *paced) Write(b []byte) (n int, err error) {
	for len(b) > 0 && err == nil {
		if p.begun.IsZero() {
			p.begun, p.written = time.Now(), p.c.log.Written()
		}
		piece := b[:min(len(b), 1<<20)]
		m := 0
		m, err = p.f.WriteAt(piece, p.at)
		p.at += int64(m)
		n += m
		b = b[m:]
		if err == nil && p.at-p.synced >= paceStep {
			err = p.pause()
		}
	}
	return n, err
}

// pause syncs what was written, and waits while the log needs the disk.
func (p *paced) pause() error {
	if err := p.f.Sync(); err != nil {
		return err
	}
	p.synced = p.at
	wait := time.Duration(0)
	if p.c.log.Written() != p.written {
		wait = time.Since(p.begun)
	}
	p.begun = time.Time{}
	select {
	case <-p.c.stop:
		return pando.ErrClosed
	case <-time.After(wait):
		return nil
	}
}

// removeBefore removes the segments before one, and all checkpoints but one.
func (c *core) removeBefore(segment uint64, but string) error {
	names, err := c.dir.Names()
	if err != nil {
		return err
	}
	for _, name := range names {
		n, isLog := log.Numbered(name)
		_, _, isCheckpoint := checkpointOf(name)
		if isLog && n < segment || isCheckpoint && name != but && but != "" {
			if err := c.dir.Remove(name); err != nil {
				return fmt.Errorf("pandostore: cannot remove what a checkpoint has made superfluous: %w", err)
			}
		}
	}
	return nil
}

// newestCheckpoint opens the newest checkpoint of a folder. Another process may write a
// newer one meanwhile and remove it: then it tries again.
func newestCheckpoint[F any](path string, open func(file string) (F, error)) (f F, err error) {
	err = steady(path, func(r *recovery) error {
		checkpoints, _, err := r.list()
		if err != nil {
			return err
		}
		if len(checkpoints) == 0 {
			return &none{path}
		}
		f, err = open(r.dir.Path(checkpoints[len(checkpoints)-1]))
		return err
	})
	return f, err
}

// none says that a store has no checkpoint.
type none struct{ path string }

func (n *none) Error() string { return "pandostore: " + n.path + " has no checkpoint yet" }

func (n *none) Unwrap() error { return fs.ErrNotExist }

// steady calls look for a folder that another process may change meanwhile, and again where a
// file that was to be read is no longer there.
func steady(path string, look func(r *recovery) error) error {
	for range 100 {
		dir, err := disk.Existing(path)
		if err != nil {
			return fmt.Errorf("pandostore: cannot open the folder: %w", err)
		}
		err = look(&recovery{core: &core{dir: dir}})
		var no *none
		if !errors.Is(err, fs.ErrNotExist) || errors.As(err, &no) {
			return translate(dir, err)
		}
	}
	return fmt.Errorf("pandostore: checkpoints of %s are replaced faster than they can be opened", path)
}
