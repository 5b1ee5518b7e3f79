package index

import (
	"cmp"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/snapshot"
	"github.com/pando-index/pando/internal/vector"
)

// moment is a map as it was at one moment: an engine over a snapshot of its
// tree. The snapshot is taken at once, the directory to read it by is made when
// it is first read.
type moment interface {
	engine
	// open makes the directory, and returns the number of entries.
	open(workers int) (n int, err error)
	// lookup sets vals, of 8 bytes each, and found to the results for keys.
	lookup(keys order.Keys, vals []uint64, found []bool) (hits int)
	// entries sets keys and vals to those of n entries from lo on, values as the
	// tree holds them. Either may be empty. An error is that of a GPU that alone
	// has them.
	entries(lo, n int, keys order.Keys, vals []uint64) error
}

// valueMoment is a moment whose values can be read many at a time.
type valueMoment interface {
	// readValues hands n values from lo on, of size bytes, to r; selectValues
	// selects from these entries.
	readValues(lo, n, size int, r *vector.Reader)
	selectValues(lo, n int, s *selecting)
}

// singleMoment is a moment that finds a key's value, as the tree holds it, without its rank: to count
// all entries below every node takes much longer than one lookup.
type singleMoment interface {
	single(key order.Probe) (bits uint64, ok bool)
}

// runMoment is a moment that copies many runs of entries at once: run i begins
// with entry first[i] and goes to offsets[i] to offsets[i+1].
type runMoment interface {
	runs(first, offsets []int, keys order.Keys, vals []uint64)
}

// compactMoment is a moment that an engine can be built from without a copy of
// all entries. size is that of a value, 0 where it takes no memory.
type compactMoment interface {
	compact(key order.Type, size int, cfg Config) (b built, ok bool, err error)
}

// momentOf implements moment.
type momentOf[C order.Code] struct {
	taken *bplus.Snapshot[C]
	view  *bplus.View[C]
	tree  *bplus.Tree[C]
	work  int
}

func (t *codes[C]) freeze() (moment, error) {
	s, err := t.Tree.Snapshot()
	if err != nil {
		return nil, err
	}
	return &momentOf[C]{taken: s, tree: t.Tree, work: t.workers}, nil
}

func (e *momentOf[C]) open(workers int) (n int, err error) {
	if e.view, err = e.taken.View(workers); err != nil {
		return 0, err
	}
	return e.view.Len(), nil
}

func (e *momentOf[C]) Seek(key order.Probe) (rank int, equal bool) {
	rank, _, equal = e.view.Seek(C(key.Code))
	return rank, equal
}

func (e *momentOf[C]) After(key order.Probe) int {
	rank, _, equal := e.view.Seek(C(key.Code))
	if equal {
		rank++
	}
	return rank
}

func (e *momentOf[C]) endNear(_ int, key order.Probe) int { return e.After(key) }

func (e *momentOf[C]) Key(i int) order.Probe {
	var k [1]C
	e.view.CopyOut(i, 1, k[:], nil)
	return order.Probe{Code: uint64(k[0])}
}

func (e *momentOf[C]) CopyKeys(lo int, keys order.Keys) { e.entries(lo, keys.Len(), keys, nil) }

func (e *momentOf[C]) entries(lo, n int, keys order.Keys, vals []uint64) error {
	const most = 4096
	var ks, vs []C
	if keys.Len() > 0 {
		ks = make([]C, min(most, n))
	}
	if vals != nil {
		vs = make([]C, min(most, n))
	}
	for at := 0; at < n; at += most {
		k := min(most, n-at)
		e.view.CopyOut(lo+at, k, ks, vs)
		if ks != nil {
			setKeys(keys.Slice(at, at+k), ks[:k])
		}
		if vs != nil {
			for i, v := range vs[:k] {
				vals[at+i] = uint64(v)
			}
		}
	}
	return nil
}

// compact builds an engine, unless its codes are narrower than the tree's.
func (e *momentOf[C]) compact(key order.Type, size int, cfg Config) (b built, ok bool, err error) {
	if key.Bits() != codeBits[C]() {
		return b, false, nil
	}
	src := layout.Source[C]{Len: e.view.Len(), Encode: func(dst []C, lo int) { e.view.CopyOut(lo, len(dst), dst, nil) }}
	if size > 0 {
		src.Both = func(keys []C, vals []byte, lo int) { e.both(keys, vals, lo, size) }
	}
	b, err = buildSorted(src, key, size, cfg)
	return b, true, err
}

// both sets keys, unless that is nil, and vals of size bytes to the entries from lo on.
func (e *momentOf[C]) both(keys []C, vals []byte, lo, size int) {
	n := len(vals) / size
	if size*8 == codeBits[C]() {
		e.view.CopyOut(lo, n, keys, arena.As[C](vals))
		return
	}
	vs := make([]C, n)
	e.view.CopyOut(lo, n, keys, vs)
	storeVals(vals, size, vs)
}

func (e *momentOf[C]) copyKeyRuns(first, offsets []int, from, to int, keys order.Keys) {
	for i := from; i < to; i++ {
		if lo, hi := offsets[i], offsets[i+1]; lo < hi {
			e.CopyKeys(first[i], keys.Slice(lo, hi))
		}
	}
}

// each calls do with the codes of spans of keys, on all workers.
func (e *momentOf[C]) each(keys order.Keys, do func(lo int, ks []C)) {
	const piece = 1024
	par.Run(e.work, (keys.Len()+piece-1)/piece, par.Func(func(p int) {
		lo, hi := p*piece, min((p+1)*piece, keys.Len())
		ks := make([]C, hi-lo)
		codesOf(ks, keys.Slice(lo, hi))
		do(lo, ks)
	}))
}

func (e *momentOf[C]) Rank(keys order.Keys, ranks []int) {
	e.each(keys, func(lo int, ks []C) { e.view.Rank(ks, false, ranks[lo:lo+len(ks)]) })
}

func (e *momentOf[C]) RankAfter(keys order.Keys, ranks []int) {
	e.each(keys, func(lo int, ks []C) { e.view.Rank(ks, true, ranks[lo:lo+len(ks)]) })
}

func (e *momentOf[C]) FindEach(keys order.Keys, sink exec.Sink) (hits int) {
	ranks := make([]int, keys.Len())
	e.each(keys, func(lo int, ks []C) {
		for i, k := range ks {
			rank, _, equal := e.view.Seek(k)
			if ranks[lo+i] = rank; !equal {
				ranks[lo+i] = -1
			}
		}
	})
	return sink.Take(0, ranks)
}

func (e *momentOf[C]) lookup(keys order.Keys, vals []uint64, found []bool) (hits int) {
	counts := make([]int, keys.Len()/1024+1)
	e.each(keys, func(lo int, ks []C) {
		vs, ranks := make([]C, len(ks)), make([]int, len(ks))
		counts[lo/1024] = e.view.Get(ks, vs, found[lo:lo+len(ks)], ranks)
		for i, v := range vs {
			vals[lo+i] = uint64(v)
		}
	})
	for _, n := range counts {
		hits += n
	}
	return hits
}

func (e *momentOf[C]) body() layout.Body { return bodyOfMoment{e.stats} }

func (e *momentOf[C]) stats() layout.Stats {
	s := layout.Stats{Kind: "bplus", Fanout: 64}
	if e.view != nil {
		s.InnerBytes = e.view.Bytes()
	}
	s.TotalBytes = s.InnerBytes
	return s
}

func (e *momentOf[C]) attach(Config) (Device, string, error) {
	return onCPU, "a snapshot shares the memory of its tree", nil
}

func (e *momentOf[C]) report(s *Stats) { s.KeptBytes = e.tree.Kept() }

func (e *momentOf[C]) release() error {
	if e.view != nil {
		e.view.Release()
		return nil
	}
	e.taken.Close()
	return nil
}

// bodyOfMoment describes a moment. It is not written to files as it lies.
type bodyOfMoment struct{ stats func() layout.Stats }

func (b bodyOfMoment) Stats() layout.Stats      { return b.stats() }
func (b bodyOfMoment) Format() *snapshot.Format { return nil }
func (b bodyOfMoment) Shape() layout.Shape      { return layout.Shape{} }
func (b bodyOfMoment) Segments() [][]byte       { return nil }
func (b bodyOfMoment) Check() error             { return nil }
func (b bodyOfMoment) Release()                 {}

// Freezing is a snapshot of a map that has not been read yet.
type Freezing struct {
	m  *Map
	at moment
}

// Freeze takes a snapshot of the map.
func (m *Map) Freeze() (*Freezing, error) {
	at, err := m.freeze()
	if err != nil {
		return nil, m.failed(err)
	}
	return &Freezing{m, at}, nil
}

// Open makes an index of the snapshot. It goes once through all leaves.
func (f *Freezing) Open() (*Index, error) {
	n, err := f.at.open(f.m.workers)
	if err != nil {
		return nil, mutableError(err)
	}
	ix := newIndex(n, f.m.key, f.m.val, f.m.cfg, f.m.codec)
	ix.engine = f.at
	ix.values.moment = f
	ix.describe(f.m.cfg)
	ix.stats.Device, ix.stats.Reason, _ = f.at.attach(f.m.cfg)
	return ix, nil
}

// Drop gives up a snapshot that nobody will read.
func (f *Freezing) Drop() { f.at.release() }

// value returns value i.
func (f *Freezing) value(i int) Value {
	var b [1]uint64
	mustSolo(f.at.entries(i, 1, order.Keys{}, b[:]))
	return f.m.value(b[0])
}

// copyEntries sets keys, unless there are none, and vals to those of the entries
// from lo on. An error is that of a GPU that alone has them.
func (f *Freezing) copyEntries(lo int, keys order.Keys, vals Column) error {
	const piece = 4096
	buf := make([]uint64, min(piece, vals.n))
	for at := 0; at < vals.n; at += piece {
		n := min(piece, vals.n-at)
		part := keys
		if keys.Len() > 0 {
			part = keys.Slice(at, at+n)
		}
		if err := f.at.entries(lo+at, n, part, buf[:n]); err != nil {
			return err
		}
		f.m.storeAll(f.m.val.part(vals, at, at+n), buf[:n])
	}
	return nil
}

// copyRuns copies runs of entries, and reports whether the moment has a way to copy
// many at once.
func (f *Freezing) copyRuns(first, offsets []int, keys order.Keys, vals Column) bool {
	at, ok := f.at.(runMoment)
	if !ok {
		return false
	}
	bits := make([]uint64, vals.n)
	at.runs(first, offsets, keys, bits)
	f.m.storeAll(vals, bits)
	return true
}

// get looks a key up where that needs no rank; known reports whether it has.
func (f *Freezing) get(key order.Probe) (v Value, found, known bool) {
	at, known := f.at.(singleMoment)
	if !known {
		return v, false, false
	}
	bits, found := at.single(key)
	if found {
		v = f.m.value(bits)
	}
	return v, found, true
}

// getBatch looks keys up.
func (f *Freezing) getBatch(keys order.Keys, vals Column, found []bool) (hits int) {
	bits := make([]uint64, keys.Len())
	if found == nil {
		found = make([]bool, keys.Len())
	}
	hits = f.at.lookup(keys, bits, found)
	for i, b := range bits {
		var v Value
		if found[i] {
			v = f.m.value(b)
		}
		f.m.val.store(f.m.val.place(vals, i), v)
	}
	return hits
}

// Compact builds an index of its own from one over a snapshot: from the
// snapshot's leaves at once, where they hold codes as the index will, else from a
// copy of all entries. It keeps the note, unless cfg has another.
func (ix *Index) Compact(cfg Config, codec *Codec) (*Index, error) {
	cfg.Note = cmp.Or(cfg.Note, ix.note)
	if at, ok := ix.engine.(compactMoment); ok && ix.values.moment.m.boxes == nil {
		if built, ok, err := at.compact(ix.key.Type, ix.values.kept, cfg); ok {
			return complete(newIndex(ix.n, ix.key, ix.values.ValueType, cfg, codec), built, err, Column{}, cfg)
		}
	}
	val := ix.values.ValueType
	keys, vals := MakeKeys(ix.key.Type, ix.n), val.Zeros(ix.n)
	const piece = 64 << 10
	failed := make([]error, (ix.n+piece-1)/piece)
	par.Run(par.Workers(cfg.Workers), len(failed), par.Func(func(p int) {
		lo, hi := p*piece, min((p+1)*piece, ix.n)
		failed[p] = ix.values.moment.copyEntries(lo, keys.Slice(lo, hi), val.part(vals, lo, hi))
	}))
	if err := cmp.Or(failed...); err != nil {
		return nil, soloError(err)
	}
	return Build(keys, ix.key, vals, val, cfg, codec)
}

// MakeKeys returns n keys of a type, all zero.
func MakeKeys(t order.Type, n int) order.Keys {
	if t.Bits() == 0 {
		return order.KeysAs(t, make([]string, n))
	}
	return order.MakeKeys(t, n)
}
