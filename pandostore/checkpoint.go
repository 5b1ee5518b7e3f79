package pandostore

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/disk"
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/log"
	"github.com/pando-index/pando/internal/mutant"
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

// noteOf returns the note of the checkpoints of a store: the user's, and a last line that
// names the store. Only the log behind a checkpoint makes it this store's, and one of another
// may have the same name.
func noteOf(text string, store uint64) string {
	line := fmt.Sprintf("%s%016x", noteLine, store)
	if text == "" {
		return line
	}
	return text + "\n" + line
}

// noteLine is how the last line of a note begins.
const noteLine = "checkpoint of store "

// MaxNote is the most bytes that a Note can have.
const MaxNote = files.MaxNote - len("\n"+noteLine) - 16

// readNote returns the parts of a note.
func readNote(note string) (text string, store uint64, ok bool) {
	at := strings.LastIndex(note, noteLine)
	if at < 0 {
		return "", 0, false
	}
	store, err := strconv.ParseUint(note[at+len(noteLine):], 16, 64)
	text = strings.TrimSuffix(note[:at], "\n")
	return text, store, err == nil && noteOf(text, store) == note
}

// headOf returns what the head of a checkpoint says of its store, and the user's note.
func headOf(dir disk.Folder, name string) (info log.Info, note string, err error) {
	f, err := whole(dir, name)
	if err != nil {
		return info, "", err
	}
	defer f.Close()
	h, err := index.ReadFile(name, f, f.Size())
	if err != nil {
		return info, "", err
	}
	note, store, ok := readNote(h.Note)
	if !ok {
		return info, "", fmt.Errorf("%w: it is of no store: its note is %q", pando.ErrFile, h.Note)
	}
	return log.Info{Store: store, Key: h.Key, Value: h.Value, ValSize: h.ValSize}, note, nil
}

// checkpointIfLong begins a checkpoint in the background if the log is as long as the last
// one.
func (c *core) checkpointIfLong() {
	k := &c.checkpoints
	enough := max(c.cfg.checkpoint, k.bytes.Load())
	if c.cfg.never || c.logLength() < max(enough, k.again.Load()) || k.busy.Swap(true) {
		return
	}
	c.seq.mu.Lock()
	defer c.seq.mu.Unlock()
	if c.seq.refusal() != nil {
		return
	}
	c.background.Go(func() {
		defer k.busy.Store(false)
		err := c.writeCheckpointSafely()
		if errors.Is(err, pando.ErrClosed) {
			return
		}
		if err == nil {
			k.failed.Store(nil)
			return
		}
		k.failed.Store(&err)
		k.again.Store(c.logLength() + enough)
	})
}

// writeCheckpointSafely is writeCheckpoint where a codec that panics must not end the
// program: nobody has called it who could know of that.
func (c *core) writeCheckpointSafely() (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("pandostore: cannot write a checkpoint: a panic: %v", p)
		}
	}()
	return c.writeCheckpoint()
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
		return fmt.Errorf("pandostore: cannot begin a checkpoint: %w", err)
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
	k.again.Store(0)
	k.written.Add(1)
	c.removeBefore(r.mark.segment, name)
	return nil
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
	done := false
	defer func() {
		if !done { // it has failed, or a codec panics
			c.dir.Remove(temporary)
		}
	}()
	if size, err = c.fill(f, m); err != nil {
		return 0, err
	}
	if err := c.dir.Rename(temporary, name); err != nil {
		return 0, err
	}
	done = true
	return size, c.syncNames()
}

// fill writes a checkpoint to a file, and closes that.
func (c *core) fill(f disk.File, m moment) (size int64, err error) {
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	w := &paced{c: c, f: f}
	if _, err = m.WriteTo(w); err != nil {
		return 0, err
	}
	if mutant.On && mutant.Is("store: checkpoint synced") {
		return w.at, nil
	}
	return w.at, f.Sync()
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

// removeBefore removes the segments before one, and all checkpoints but one. What cannot be
// removed goes with the next checkpoint, or when the store is opened again.
func (c *core) removeBefore(segment uint64, but string) {
	names, err := c.dir.Names()
	if err != nil {
		return
	}
	for _, name := range names {
		n, isLog := log.Numbered(name)
		_, _, isCheckpoint := checkpointOf(name)
		if isLog && n < segment || isCheckpoint && name != but && but != "" {
			c.dir.Remove(name)
		}
	}
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
			return noFolder(err)
		}
		err = look(&recovery{core: &core{dir: dir}})
		var no *none
		if !errors.Is(err, fs.ErrNotExist) || errors.As(err, &no) {
			return translate(dir, err)
		}
	}
	return fmt.Errorf("pandostore: checkpoints of %s are replaced faster than they can be opened", path)
}
