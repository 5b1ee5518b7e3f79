package live

import (
	"github.com/pando-index/pando/internal/files"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/vector"
)

// Moment is a tree as it was at one moment. Values are as the tree holds them. It is there
// at once; Open makes what it is read by. A moment of a tree on a GPU alone panics when the
// GPU is lost, unless a method returns an error.
type Moment interface {
	// Open makes the moment ready to be read, on at most workers goroutines, and returns
	// the number of entries. It is called before any method below but Release.
	Open(workers int) (n int, err error)
	// Seek returns the number of entries below key, and reports whether the entry of that
	// rank has it.
	Seek(key order.Probe) (rank int, equal bool)
	// Rank returns the number of entries below key, or up to it.
	Rank(key order.Probe, after bool) int
	// RankBatch sets ranks[i] to Rank(keys[i]).
	RankBatch(keys order.Keys, after bool, ranks []int)
	// Get returns the value of key, and reports whether there is one. It counts no entries,
	// which may take much longer than one lookup.
	Get(key order.Probe) (val uint64, ok bool)
	// GetBatch sets vals[i] to the value of keys[i], and found[i] to whether there is one. It
	// returns the number of keys found.
	GetBatch(keys order.Keys, vals []uint64, found []bool) (hits int)
	// Key returns the key of entry i.
	Key(i int) order.Probe
	// Entries sets keys and vals to those of n entries from lo on. Either may be empty. An
	// error is that of a GPU that alone has them.
	Entries(lo, n int, keys order.Keys, vals []uint64) error
	// About describes the moment.
	About() about
	// Release gives it back, opened or not.
	Release() error
}

// about describes a moment.
type about struct {
	stats layout.Stats
	where index.Device // which answers for it
	kept  int64        // bytes of old states that the tree keeps for its snapshots
	shown any          // for a viewer
}

// Some moments can do more.
type (
	// valueMoment is a moment whose values can be read many at a time.
	valueMoment interface {
		// ReadValues hands n values from lo on, of size bytes, to r.
		ReadValues(lo, n, size int, r *vector.Reader)
		// SelectValues selects from these entries.
		SelectValues(lo, n int, s *selecting)
	}
	// runMoment is a moment that copies many runs of entries at once: run i begins with
	// entry first[i] and goes to offsets[i] to offsets[i+1].
	runMoment interface {
		CopyRuns(first, offsets []int, keys order.Keys, vals []uint64)
	}
	// sourceMoment is a moment that an index can be built from without a copy of all
	// entries.
	sourceMoment interface {
		// Source returns the entries, with values of size bytes, as a layout.Source of the
		// codes of keys of a type, and false if the moment has none of these.
		Source(key order.Type, size int) (src any, ok bool)
	}
	// keyAppender is a moment of strings that copies a key without making it a string.
	keyAppender interface {
		AppendKey(dst []byte, i int) []byte
	}
)

// Freezing is a snapshot of a map that has not been read yet.
type Freezing struct {
	m  *Map
	at Moment
}

// Freeze takes a snapshot of the map.
func (m *Map) Freeze() (*Freezing, error) {
	at, err := m.tree.Freeze()
	if err != nil {
		return nil, m.failed(err)
	}
	return &Freezing{m, at}, nil
}

// Open makes an index of the snapshot. It goes once through all leaves.
func (f *Freezing) Open() (*index.Index, error) {
	n, err := f.at.Open(f.m.workers)
	if err != nil {
		return nil, mutableError(err)
	}
	return index.Over(&snapshot{f.at, f.m, n}, n, f.m.key, f.m.val, f.m.cfg, f.m.codec)
}

// Drop gives up a snapshot that nobody will read.
func (f *Freezing) Drop() {
	f.at.Release()
	f.m.closed()
}

// snapshot is an engine of an index over a moment of a map. It holds the values, too.
type snapshot struct {
	Moment
	m *Map
	n int // entries
}

func (s *snapshot) After(key order.Probe) int              { return s.Moment.Rank(key, true) }
func (s *snapshot) EndNear(_ int, key order.Probe) int     { return s.Moment.Rank(key, true) }
func (s *snapshot) Rank(keys order.Keys, ranks []int)      { s.RankBatch(keys, false, ranks) }
func (s *snapshot) RankAfter(keys order.Keys, ranks []int) { s.RankBatch(keys, true, ranks) }
func (s *snapshot) CopyKeys(lo int, keys order.Keys)       { mustSolo(s.Entries(lo, keys.Len(), keys, nil)) }
func (s *snapshot) Body() layout.Body                      { return momentBody{s.Moment} }
func (s *snapshot) Shown() any                             { return s.About().shown }
func (s *snapshot) Attach(index.Config) (index.Device, string, error) {
	return s.About().where, "a snapshot shares the memory of its tree", nil
}

func (s *snapshot) Report(to *index.Stats) {
	to.KeptBytes = s.About().kept
	if v, ok := s.m.apart.(*stored); ok {
		to.KeptBytes += v.store.Kept()
	}
}

// Release gives the moment back.
func (s *snapshot) Release() error {
	defer s.m.closed()
	return s.Moment.Release()
}

// Get returns the value of a key.
func (s *snapshot) Get(key order.Probe) (v index.Value, found bool) {
	bits, found := s.Moment.Get(key)
	if found {
		v = s.m.value(bits)
	}
	return v, found
}

// GetValues looks keys up.
func (s *snapshot) GetValues(keys order.Keys, vals index.Column, found []bool) (hits int) {
	bits := make([]uint64, keys.Len())
	if found == nil {
		found = make([]bool, keys.Len())
	}
	hits = s.GetBatch(keys, bits, found)
	if s.m.apart != nil {
		s.m.apart.getAll(vals, bits, found)
		return hits
	}
	for i, b := range bits {
		var v index.Value
		if found[i] {
			v = s.m.value(b)
		}
		s.m.val.Store(s.m.val.Place(vals, i), v)
	}
	return hits
}

// Val returns value i.
func (s *snapshot) Val(i int) index.Value {
	var b [1]uint64
	mustSolo(s.Entries(i, 1, order.Keys{}, b[:]))
	return s.m.value(b[0])
}

// CopyEntries copies entries from lo on.
func (s *snapshot) CopyEntries(lo int, keys order.Keys, vals index.Column) error {
	const piece = 4096
	buf := make([]uint64, min(piece, vals.Len()))
	for at := 0; at < vals.Len(); at += piece {
		n := min(piece, vals.Len()-at)
		if err := s.Entries(lo+at, n, keys.Slice(at, at+n), buf[:n]); err != nil {
			return soloError(err)
		}
		s.m.storeAll(s.m.val.Part(vals, at, at+n), buf[:n])
	}
	return nil
}

// CopyRuns copies runs of entries: all at once where the moment can, else one by one on
// all workers.
func (s *snapshot) CopyRuns(first, offsets []int, keys order.Keys, vals index.Column) {
	if at, ok := s.Moment.(runMoment); ok {
		bits := make([]uint64, vals.Len())
		at.CopyRuns(first, offsets, keys, bits)
		s.m.storeAll(vals, bits)
		return
	}
	const piece = 1024
	par.Run(s.m.workers, (len(first)+piece-1)/piece, par.Func(func(p int) {
		for i := p * piece; i < min((p+1)*piece, len(first)); i++ {
			if lo, hi := offsets[i], offsets[i+1]; lo < hi {
				s.CopyEntries(first[i], keys.Slice(lo, hi), s.m.val.Part(vals, lo, hi)) // without a GPU there is no error
			}
		}
	}))
}

// Readable reports whether values lie in the tree and can be read many at a time.
func (s *snapshot) Readable() bool {
	_, many := s.Moment.(valueMoment)
	return many && s.m.apart == nil
}

// ReadValues hands values [lo, hi) to r.
func (s *snapshot) ReadValues(lo, hi int, r *vector.Reader) {
	s.Moment.(valueMoment).ReadValues(lo, hi-lo, s.m.size, r)
}

// Select selects entries by their values.
func (s *snapshot) Select(first, end int, c vector.Condition, room func(n int) (order.Keys, index.Column)) {
	out := make([]selected, vector.Pieces(end-first))
	par.Run(s.m.workers, len(out), par.Func(func(p int) {
		lo := first + p*vector.Piece
		s.Moment.(valueMoment).SelectValues(lo, min(vector.Piece, end-lo), s.m.selecting(c, &out[p]))
	}))
	copySelected(out, s.m.val, room)
}

// Compact builds an index from the moment's leaves at once, where these hold codes as the
// index will.
func (s *snapshot) Compact(cfg index.Config, codec *index.Codec) (ix *index.Index, ok bool, err error) {
	at, ok := s.Moment.(sourceMoment)
	if !ok || s.m.apart != nil {
		return nil, false, nil
	}
	src, ok := at.Source(s.m.key.Type, s.m.size)
	if !ok {
		return nil, false, nil
	}
	ix, err = index.BuildSorted(src, s.m.key, s.m.val, cfg, codec)
	return ix, true, err
}

// Prefix returns the entries [lo, hi) whose key begins with p.
func (s *snapshot) Prefix(p string) (lo, hi int) {
	hi = s.n
	if next, ok := order.AfterPrefix(p); ok {
		hi = s.Moment.Rank(order.Probe{Text: next}, false)
	}
	return s.Moment.Rank(order.Probe{Text: p}, false), hi
}

// AppendKey appends key i to dst.
func (s *snapshot) AppendKey(dst []byte, i int) []byte {
	return s.Moment.(keyAppender).AppendKey(dst, i)
}

var (
	_ index.Engine    = (*snapshot)(nil)
	_ index.Holder    = (*snapshot)(nil)
	_ index.Prefixed  = (*snapshot)(nil)
	_ index.Selecter  = (*snapshot)(nil)
	_ index.Compacter = (*snapshot)(nil)
	_ index.Shower    = (*snapshot)(nil)
)

// momentBody describes a moment. It is not written to files as it lies.
type momentBody struct{ at Moment }

func (b momentBody) Stats() layout.Stats   { return b.at.About().stats }
func (b momentBody) Format() *files.Format { return nil }
func (b momentBody) Shape() layout.Shape   { return layout.Shape{} }
func (b momentBody) Segments() [][]byte    { return nil }
func (b momentBody) Check() error          { return nil }
func (b momentBody) Release()              {}
