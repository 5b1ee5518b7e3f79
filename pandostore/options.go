package pandostore

import (
	"fmt"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/log"
)

// Option changes how a store writes, and what its tree is.
type Option func(*config)

type config struct {
	mode       mode
	every      time.Duration
	checkpoint int64
	never      bool
	progress   func(Progress)
	note       string
	tree       []pando.Option
	segment    int64 // size of a segment
	frame      int   // about the bytes of a frame: a batch that has more is several frames, and a commit frame
}

// mode says when the log is synced.
type mode uint8

const (
	syncGroups mode = iota // before a group of changes is acknowledged, or seen
	syncEvery              // now and then
	syncAsked              // by Sync, Checkpoint and Close
)

// SyncEvery makes changes return when the system has them, and syncs the log when it has
// not been synced for d. They survive the end of the process at once, and a crash of the
// machine after d at most: a crash then loses the last changes, and none before one that
// it keeps. Readers see changes before they are durable.
func SyncEvery(d time.Duration) Option {
	return func(c *config) { c.mode, c.every = syncEvery, d }
}

// NoSync makes changes return when the system has them, as SyncEvery does, and syncs the
// log when Sync, Checkpoint or Close ask for it, and at the end of each segment of 64 MiB.
func NoSync() Option { return func(c *config) { c.mode = syncAsked } }

// CheckpointAfter sets how long the log becomes before a checkpoint is written: as long as the
// last checkpoint, and this many bytes at least. The default is 64 MiB. 0 means that
// only Checkpoint writes one.
func CheckpointAfter(bytes int64) Option {
	return func(c *config) { c.checkpoint, c.never = bytes, bytes == 0 }
}

// Recovering calls report while Open recovers a store, from one goroutine at a time.
func Recovering(report func(Progress)) Option { return func(c *config) { c.progress = report } }

// Progress is how far a recovery is.
type Progress struct {
	Done, Total int64 // bytes of checkpoint and log; the log is read twice and counts as such
}

// Note attaches a text of at most MaxNote bytes to the checkpoints of a store, such as a
// description of what it holds. Without it they keep that of the last. Inspect returns it.
func Note(text string) Option { return func(c *config) { c.note = text } }

// Tree gives options to the tree: pandostore.Tree(pando.On(pando.GPU(0))), say. All that
// pando.NewTree takes are good, but for pando.Note, which has no effect: Note has. A
// MemoryLimit counts once Open has returned: a store that holds more is opened, and then
// takes no changes that need memory until enough was deleted.
func Tree(opts ...pando.Option) Option {
	return func(c *config) { c.tree = append(c.tree, opts...) }
}

// configure applies options and checks their values.
func configure(opts []Option) (config, error) {
	c := config{checkpoint: 64 << 20, segment: log.SegmentSize, frame: 4 << 20}
	for _, o := range opts {
		if o == nil {
			return c, fmt.Errorf("%w: nil; leave it out instead", pando.ErrOption)
		}
		o(&c)
	}
	if c.mode == syncEvery && c.every <= 0 {
		return c, fmt.Errorf("%w: SyncEvery(%v); without it, each group of changes is synced", pando.ErrOption, c.every)
	}
	if len(c.note) > MaxNote {
		return c, fmt.Errorf("%w: Note of %d bytes; %d is the most", pando.ErrOption, len(c.note), MaxNote)
	}
	if c.checkpoint < 0 {
		return c, fmt.Errorf("%w: CheckpointAfter(%d); 0 means never by itself", pando.ErrOption, c.checkpoint)
	}
	return c, nil
}
