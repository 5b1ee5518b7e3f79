package pandostore

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandostore/internal/disk"
	"github.com/pando-index/pando/pandostore/internal/log"
)

// core is a Store without its types.
type core struct {
	dir  disk.Folder
	lock io.Closer
	cfg  config
	cols *index.Columns
	tree target
	log  *log.Writer
	seq  sequencer

	gatherings sync.Pool

	checkpoints checkpoints
	found       Found // by Open

	stop       chan struct{} // closed by Close
	background sync.WaitGroup
	closeOnce  sync.Once
	closeErr   error
}

// Log describes the log and the checkpoints of a store.
type Log struct {
	Bytes       int64  // of the log behind the last checkpoint
	Next        uint64 // number of the next operation: as many and one were logged
	Checkpoint  int64  // bytes of the last checkpoint; 0 if there is none
	Checkpoints int    // written since Open
	Failed      error  // of the last checkpoint that the store wrote by itself, if it failed
	ReadOnly    error  // why the store takes no changes any more
	Found       Found  // what Open has found
}

// Found is what Open has found.
type Found struct {
	Checkpoint        string // name of its file; "" if there is none
	CheckpointEntries int
	CheckpointBytes   int64
	CheckpointTime    time.Duration
	Segments          int
	LogFrames         int
	LogOperations     int64 // as many as were done again
	LogBytes          int64
	LogTime           time.Duration
	Torn              int64 // bytes of a change that a crash has left unfinished at the end
	Void              int64 // operations of a batch that a crash has left unfinished
	Clean             bool  // the program before has closed the store
}

// open recovers what the folder has, and begins to write.
func (c *core) open(dir disk.Folder, cfg config, load func(checkpoint, note string) (target, error)) (err error) {
	c.dir, c.cfg, c.stop = dir, cfg, make(chan struct{})
	before := recovery{core: c}
	if err := before.look(); errors.Is(err, pando.ErrFile) {
		return err // it is no store, and is left as it is; what else is wrong shows once nobody else can write
	}
	if c.lock, err = dir.Lock(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.lock.Close()
		}
	}()
	r := recovery{core: c, load: load}
	start, info, err := r.run()
	if err != nil {
		return err
	}
	if c.log, err = log.NewWriter(dir, info, cfg.segment, start); err != nil {
		return err
	}
	c.checkpoints.begin(c.found.CheckpointBytes, c.found.LogBytes)
	c.tree.bind()
	if err := c.log.Broken(); err != nil {
		c.fail(err)
		return nil
	}
	r.tidy()
	if cfg.mode == syncEvery {
		c.background.Go(c.syncNowAndThen)
	}
	return nil
}

// syncNowAndThen syncs the log for SyncEvery.
func (c *core) syncNowAndThen() {
	tick := time.NewTicker(c.cfg.every)
	defer tick.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-tick.C:
			if c.refuses() != nil {
				return
			}
			if mutant.On && mutant.Is("store: synced by itself") {
				continue
			}
			if err := c.log.SyncWritten(); err != nil {
				c.fail(err)
				return
			}
		}
	}
}

// close is Close.
func (c *core) close() error {
	c.closeOnce.Do(func() { c.closeErr = c.shut() })
	return c.closeErr
}

func (c *core) shut() error {
	s := &c.seq
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(c.stop)
	c.background.Wait()
	c.checkpoints.mu.Lock() // one that was asked for ends first
	defer c.checkpoints.mu.Unlock()
	c.idle()
	err := s.failed
	if err == nil {
		err = c.log.Close()
	} else {
		c.log.Abandon()
	}
	return errors.Join(err, c.tree.close(), c.lock.Close())
}

// idle waits until nothing is under way. No request comes any more.
func (c *core) idle() {
	for {
		s := &c.seq
		s.mu.Lock()
		before, leading := s.before, s.leading
		s.mu.Unlock()
		if before != nil {
			<-before
		}
		if !leading {
			return
		}
		time.Sleep(50 * time.Microsecond) // its leader has not begun yet
	}
}

// stats is Log.
func (c *core) stats() Log {
	c.seq.mu.Lock()
	failed := c.seq.failed
	c.seq.mu.Unlock()
	l := Log{Bytes: c.logLength(), Next: c.log.Next(), ReadOnly: failed, Found: c.found}
	k := &c.checkpoints
	l.Checkpoint, l.Checkpoints = k.bytes.Load(), int(k.written.Load())
	if err := k.failed.Load(); err != nil {
		l.Failed = *err
	}
	return l
}

// logLength returns the bytes of the log behind the last checkpoint.
func (c *core) logLength() int64 {
	return c.checkpoints.found.Load() + c.log.Written() - c.checkpoints.mark.Load()
}

// checkpoints is what is known of checkpoints.
type checkpoints struct {
	mu      sync.Mutex // held while one is written
	bytes   atomic.Int64
	mark    atomic.Int64 // length of the log, as its writer counts, where the last begins
	found   atomic.Int64 // bytes of the log that Open found behind it
	again   atomic.Int64 // length of the log behind it from which on one that has failed is tried again
	written atomic.Int64
	busy    atomic.Bool // the store writes one by itself
	failed  atomic.Pointer[error]
}

func (k *checkpoints) begin(bytes, behind int64) {
	k.bytes.Store(bytes)
	k.found.Store(behind)
}
