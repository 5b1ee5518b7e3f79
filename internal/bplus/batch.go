package bplus

import (
	"slices"
	"sort"
	"sync"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// Ops is a batch of operations in key order, those of one key in the order in
// which they are to be done.
type Ops[C Code] struct {
	Keys  []C
	Vals  []C       // values of Sets
	Kinds []op.Kind // nil where all are of one kind
	Kind  op.Kind
	// Old and Found are set to the value just before each operation, and whether
	// there was one, unless they are nil.
	Old   []C
	Found []bool
	// Seen, unless it is nil, is called with the value that a Get has found while
	// the value is in the tree, and the memory that it stands for sure to be there.
	// It may be called again for the same operation: the last time counts.
	Seen func(i int, val C)

	// Half is set by Apply if it has failed when some operations were done: memory has
	// failed that nobody had promised, for a snapshot that was taken meanwhile.
	Half bool
}

func (o *Ops[C]) kind(i int) op.Kind {
	if o.Kinds == nil {
		return o.Kind
	}
	return o.Kinds[i]
}

// play does operations [from, to), all of one key, on the value that it has.
func (o *Ops[C]) play(from, to int, val C, had bool) (C, bool) {
	for i := from; i < to; i++ {
		if o.Found != nil {
			o.Old[i], o.Found[i] = val, had
		}
		if o.Seen != nil && had && o.kind(i) == op.Get {
			o.Seen(i, val)
		}
		switch o.kind(i) {
		case op.Set:
			val, had = o.Vals[i], true
		case op.Delete:
			val, had = 0, false
		}
	}
	return val, had
}

// same returns the end of the operations that have the key of operation i.
func (o *Ops[C]) same(i int) int {
	end := i + 1
	for end < len(o.Keys) && o.Keys[end] == o.Keys[i] {
		end++
	}
	return end
}

// playOn is the edit that plays operations of one key.
type playOn[C Code] struct {
	ops      *Ops[C]
	from, to int
}

func (p playOn[C]) decide(old C, had bool, _ uint64) (C, bool) {
	return p.ops.play(p.from, p.to, old, had)
}

const (
	// pieceOps is the number of operations that a worker takes at a time.
	pieceOps = 8192
	// ahead is the number of operations whose leaves are looked up together.
	ahead = 256
	// roomAhead is how many operations before its turn the lines that an operation
	// changes beside its own are prefetched.
	roomAhead = 8
	// dense is the number of operations on one leaf from which on the leaf is
	// written anew rather than line by line, and denseOn the same for the leaf
	// behind such a one, which is read already: batches of 1M, 2M and 3M into 16M
	// are fastest near these.
	dense   = 24
	denseOn = 8
	// tellAtOnce is the number of new leaves that a batch tells parents of together:
	// those of several pieces, so that most parents are written anew once.
	tellAtOnce = 1024
)

// batch is a batch on its way.
type batch[C Code] struct {
	t    *Tree[C]
	used promises
	once sync.Once
	err  error

	mu     sync.Mutex
	bounds [][]boundary[C] // of new leaves that parents are still to be told of, in key order each
	untold int             // their number
}

// Apply does all operations of a batch, or none if there is not enough memory
// for all of them, unless it says otherwise: see Half. Each key is changed at once,
// others may be seen between.
func (t *Tree[C]) Apply(ops *Ops[C], workers int) error {
	ops.Half = false
	need := func() int { return t.need(ops, workers) }
	return t.apply(need, func(b *batch[C]) {
		pieces := (len(ops.Keys) + pieceOps - 1) / pieceOps
		par.Run(workers, pieces, par.Func(func(p int) { b.piece(ops, ops.cut(p*pieceOps), ops.cut((p+1)*pieceOps)) }))
		ops.Half = b.err != nil
	})
}

// SetParts is Apply for n pairs to be set that are not all sorted at once. part
// calls use with the pairs of one of the given number of parts, in key order; the
// keys of a part are below those of the next. Several goroutines call it. The tree
// must have no limit: how much memory a batch needs at most is known only when it is
// sorted.
func (t *Tree[C]) SetParts(n, parts int, part func(p int, use func(keys, vals []C)), workers int) error {
	need := func() int { return t.needOf(n, true, workers) }
	return t.apply(need, func(b *batch[C]) {
		par.Run(workers, parts, par.Func(func(p int) {
			part(p, func(keys, vals []C) {
				b.piece(&Ops[C]{Keys: keys, Vals: vals, Kind: op.Set}, 0, len(keys))
			})
		}))
	})
}

// apply does a batch that needs so many leaves at most.
func (t *Tree[C]) apply(need func() int, do func(b *batch[C])) error {
	t.many.RLock()
	defer t.many.RUnlock()
	t.rw.Lock()
	defer t.rw.Unlock()
	if t.Closed() {
		return op.ErrClosed
	}
	t.edges.ReleaseAll()
	n := need()
	if err := t.room(int64(n) * int64(t.leaves.pool.SlotBytes())); t.limit.Load() > 0 && err != nil {
		return err
	}
	if err := t.leaves.promise(n); err != nil {
		return err
	}
	t.Note(StepPromise, 0)
	b := &batch[C]{t: t, used: promises{left: n}}
	do(b)
	if !mutant.On || !mutant.Is("batch: the rest told") {
		b.tell(nil, 1)
	}
	t.leaves.unpromise(max(b.used.left, 0))
	t.edges.AcquireAll()
	return b.err
}

// promises counts the leaves promised to a batch that it has not taken yet.
type promises struct {
	mu   sync.Mutex
	left int
}

// cut returns where a piece that should begin with operation i begins: with
// the first operation of its key.
func (o *Ops[C]) cut(i int) int {
	i = min(i, len(o.Keys))
	for i > 0 && i < len(o.Keys) && o.Keys[i] == o.Keys[i-1] {
		i--
	}
	return i
}

// need returns the number of leaves that a batch takes at most. Under a limit it
// is worth to look closer.
func (t *Tree[C]) need(ops *Ops[C], workers int) int {
	sets := ops.Kinds != nil || ops.Kind == op.Set
	if sets && t.limit.Load() > 0 {
		return t.needExactly(ops) + t.needOf(len(ops.Keys), false, workers)
	}
	return t.needOf(len(ops.Keys), sets, workers)
}

// needOf is need for n operations that nobody has looked at.
func (t *Tree[C]) needOf(n int, sets bool, workers int) (need int) {
	if t.snapshots.newest.Load() != nil { // any leaf may have to be kept as it was
		need = min(n, t.leaves.inUse())
	}
	if sets {
		need += min(n, t.leaves.inUse()) + n/(capacity[C]()/2) + 2*workers
	}
	return need
}

// needExactly returns the number of leaves that are split off others.
func (t *Tree[C]) needExactly(ops *Ops[C]) (need int) {
	for i := 0; i < len(ops.Keys); {
		x, _, word := t.seek(ops.Keys[i])
		high, n, from := t.leaf(x).high(), simd.Entries(word), i
		for i < len(ops.Keys) && (ops.Keys[i] <= high || i == from) {
			end := ops.same(i)
			for ; i < end; i++ {
				if ops.kind(i) == op.Set {
					n++
					break
				}
			}
			i = end
		}
		if n > bulk[C]() {
			need += (n + bulk[C]() - 1) / bulk[C]()
		}
	}
	return need
}

// bulk returns the number of entries that a leaf gets which is filled by a batch.
func bulk[C Code]() int { return capacity[C]() * 7 / 8 }

// piece does operations [lo, hi).
func (b *batch[C]) piece(ops *Ops[C], lo, hi int) {
	if lo >= hi {
		return
	}
	w := &worker[C]{batch: b, ops: ops, used: &b.used, s: par.Get(b.t.scratches).ready(), next: nothing}
	w.quick = ops.Kinds == nil && ops.Kind == op.Set && ops.Found == nil && b.t.quick()
	defer func() {
		par.Put(b.t.scratches, w.s)
		b.t.count(uint32(lo), w.delta)
	}()
	var places [ahead]uint64
	for lo < hi {
		if end, ok := w.onward(lo, hi); ok {
			lo = end
			continue
		}
		n, ok := min(hi-lo, ahead), false
		if w.gen, ok = b.t.enter(); !ok {
			b.once.Do(func() { b.err = op.ErrClosed })
			return
		}
		r := b.t.view()
		simd.PlaceRegular(&r, ops.Keys[lo:lo+n], places[:n])
		stall.At("batch: places found")
		b.t.note(StepPlaces, ops.Keys[lo], uint32(places[0]>>8), nothing)
		lo = w.do(lo, hi, places[:n])
		b.t.note(StepPiece, ops.Keys[lo-1], nothing, nothing)
	}
	b.tell(w.bounds, tellAtOnce)
}

// tell notes that parents are to be told of new leaves, which are in key order, and
// tells them if there are so many as least by now.
func (b *batch[C]) tell(bounds []boundary[C], least int) {
	b.mu.Lock()
	if len(bounds) > 0 {
		b.bounds, b.untold = append(b.bounds, bounds), b.untold+len(bounds)
	}
	all, n := b.bounds, b.untold
	if n >= least {
		b.bounds, b.untold = nil, 0
	}
	b.mu.Unlock()
	stall.At("batch: parents not told")
	if n < least {
		return
	}
	sort.Slice(all, func(i, j int) bool { return all[i][0].key < all[j][0].key })
	list := make([]boundary[C], 0, n)
	for _, bounds := range all {
		list = append(list, bounds...)
	}
	b.t.note(StepTell, list[0].key, list[0].leaf, nothing)
	b.t.addBoundaries(list)
}

// worker is the state of one goroutine in a batch.
type worker[C Code] struct {
	*batch[C]
	ops    *Ops[C]
	used   *promises
	s      *scratch[C]
	gen    uint64
	quick  bool // the batch only sets values, no old ones are asked for, and no recorder is set
	delta  int  // entries more than before
	bounds []boundary[C]
	next   uint32 // the leaf behind the one that was written anew last, as of generation gen, or nothing
}

// do does operations from lo on, at least those whose places are given, and
// returns where it ended.
func (w *worker[C]) do(lo, hi int, places []uint64) int {
	keys, i := w.ops.Keys, lo
	for i < hi && i < lo+len(places) {
		if w.quick {
			i += w.put(i, places[i-lo:])
			if i == lo+len(places) {
				break
			}
		}
		if soon := i - lo + roomAhead; soon < len(places) {
			w.t.leaf(uint32(places[soon] >> 8)).fetchRoom(int(places[soon] & 0xff))
		}
		x, together := places[i-lo]>>8, 1
		for i-lo+together < len(places) && together < dense && places[i-lo+together]>>8 == x {
			together++
		}
		if together == dense {
			if end, ok := w.rewrite(uint32(x), i, hi); ok {
				i = end
				continue
			}
		}
		end := w.ops.same(i)
		if !w.single(places[i-lo], i, end) {
			if _, _, err := changeLocked(w.t, keys[i], playOn[C]{w.ops, i, end}, w.used); err != nil {
				w.once.Do(func() { w.err = err })
				return hi
			}
		}
		i = end
	}
	return i
}

// single does operations [from, to), all of one key, whose place is known, or
// was so. It returns false if that did not work out.
func (w *worker[C]) single(place uint64, from, to int) bool {
	x, j, key := uint32(place>>8), int(place&0xff), w.ops.Keys[from]
	if j == lines {
		return false
	}
	one := writing[C]{t: w.t, key: key, gen: w.gen, epoch: w.t.Epoch(), x: x, l: w.t.leaf(x), j: j, used: w.used, delta: &w.delta}
	one.word = one.l.loadWord()
	lo, bounded, hi := one.l.lineRange(j)
	if one.word&simd.WordBusy != 0 || bounded && key <= lo || key > hi {
		return false
	}
	one.read()
	stall.At("batch: line read")
	val, keep := w.ops.play(from, to, one.old, one.had)
	if !one.stable() {
		return false
	}
	done, err := one.put(val, keep)
	return done && err == nil
}

// rewrite does operations from i on that belong to leaf x, by writing the leaf
// anew. It returns where they ended, and false if that did not work out.
func (w *worker[C]) rewrite(x uint32, i, hi int) (end int, ok bool) {
	t, s, l := w.t, w.s, w.t.leaf(x)
	w.next = nothing
	epoch, word := t.Epoch(), l.loadWord()
	if word&simd.WordBusy != 0 {
		return 0, false
	}
	s.loadPilot(l)
	s.run.clear()
	l.unpack(&s.run)
	if l.loadWord() != word || !t.Current(w.gen) {
		return 0, false
	}
	in, high := s.copy.info(), s.copy.high()
	if (w.ops.Keys[i] > high || in.first == 0 && w.ops.Keys[i] <= C(in.low)) && !(mutant.On && mutant.Is("batch: leaf's keys")) {
		return 0, false
	}
	next, counted := in.next, in.dirty == 0
	if next != nothing {
		t.leaf(next).fetchAll()
	}
	if in.epoch != epoch && !(mutant.On && mutant.Is("batch: state kept")) {
		missing, ok, err := t.preserve(x, word, w.gen, ^uint64(0), w.used)
		if !ok || err != nil {
			return 0, false
		}
		in.set(epoch, missing)
	}
	in.dirty = 1
	end = w.merge(i, hi, high)
	stall.At("batch: leaf read")
	delta := len(s.more.keys) - len(s.run.keys)
	if n := len(s.more.keys); n > capacity[C]() {
		ok = w.splitMany(x, l, word, epoch)
	} else {
		s.copy.pack(s.more, high)
		ok = t.commitCopy(l, s.copy, 0, lines, word, n, w.gen, epoch)
	}
	if !ok {
		return 0, false
	}
	if counted && !(mutant.On && mutant.Is("batch: leaf noted")) {
		t.noteDirty(x)
	}
	w.delta += delta
	w.next = next
	t.note(StepRewrite, w.ops.Keys[i], x, nothing)
	if delta < 0 && len(s.more.keys) < thin[C]() {
		t.tidy(w.ops.Keys[i])
	}
	return end, true
}

// onward does operations from i on that belong to the leaf behind the one that was
// written last, if there are many of them: then nothing has to be looked for. It
// returns where they ended, and false if there are few, or that did not work out.
func (w *worker[C]) onward(i, hi int) (end int, ok bool) {
	x := w.next
	w.next = nothing
	if x == nothing || i+denseOn > hi || w.t.leaf(x).high() < w.ops.Keys[i+denseOn-1] {
		return 0, false
	}
	stall.At("batch: side link read")
	return w.rewrite(x, i, hi)
}

// merge merges operations from i on, up to key high, with the entries of a leaf.
// The result is in s.more.
func (w *worker[C]) merge(i, hi int, high C) (end int) {
	ops, r, out := w.ops, &w.s.run, &w.s.more
	end, sets := w.upTo(i, hi, high)
	room := len(r.keys) + end - i + 2*linePairs[C]() // a line of keys more, for simd.MergeRegular and simd.PackRegular
	out.clear()
	keys, vals := slices.Grow(out.keys, room)[:room], slices.Grow(out.vals, room)[:room]
	if sets {
		n := simd.MergeRegular(keys, vals, r.keys, r.vals, ops.Keys[i:end], ops.Vals[i:end], &w.s.room)
		out.keys, out.vals = keys[:n], vals[:n]
		return end
	}
	n, at := 0, 0
	for i < end {
		key, to := ops.Keys[i], ops.same(i)
		for at < len(r.keys) && r.keys[at] < key {
			keys[n], vals[n] = r.keys[at], r.vals[at]
			n, at = n+1, at+1
		}
		var old C
		had := at < len(r.keys) && r.keys[at] == key
		if had {
			old = r.vals[at]
			at++
		}
		if val, keep := ops.play(i, to, old, had); keep {
			keys[n], vals[n] = key, val
			n++
		}
		i = to
	}
	copy(vals[n:], r.vals[at:])
	n += copy(keys[n:], r.keys[at:])
	out.keys, out.vals = keys[:n], vals[:n]
	return end
}

// upTo returns where operations from i on, whose keys are up to high, end; and
// whether they all set values, each of another key, that nobody asks for.
func (w *worker[C]) upTo(i, hi int, high C) (end int, sets bool) {
	ops, keys := w.ops, w.ops.Keys[:hi]
	twice := false
	for end = i; end < len(keys) && keys[end] <= high; end++ {
		twice = twice || end > i && keys[end] == keys[end-1]
	}
	if twice || ops.Found != nil || ops.Kinds == nil && ops.Kind != op.Set {
		return end, false
	}
	for _, k := range ops.Kinds[min(i, len(ops.Kinds)):min(end, len(ops.Kinds))] {
		if k != op.Set {
			return end, false
		}
	}
	return end, true
}

// splitMany writes the entries in s.more to leaf x and as many new ones as it
// takes.
func (w *worker[C]) splitMany(x uint32, l leaf[C], word, epoch uint64) bool {
	t, s := w.t, w.s
	t.filling.RLock()
	defer t.filling.RUnlock()
	if t.Closed() {
		return false
	}
	n, high, in := len(s.more.keys), s.copy.high(), s.copy.info()
	parts := (n + bulk[C]() - 1) / bulk[C]()
	next, told := in.next, len(w.bounds)
	undo := func() bool {
		for _, m := range w.bounds[told:] {
			t.freeLeaf(m.leaf)
		}
		w.bounds = w.bounds[:told]
		return false
	}
	for p := parts - 1; p > 0; p-- {
		from, to := p*n/parts, (p+1)*n/parts
		y, right, err := t.newLeaf(w.used)
		if err != nil {
			return undo()
		}
		bound := s.more.keys[from-1]
		*right.info() = info{epoch: epoch, born: epoch, low: uint64(bound), owner: t.id, next: next, dirty: 1}
		right.pack(run[C]{s.more.keys[from:to], s.more.vals[from:to]}, high)
		t.revive(right, to-from)
		t.note(StepFill, bound, y, nothing)
		w.bounds = append(w.bounds, boundary[C]{bound, y})
		next, high = y, bound
	}
	stall.At("held: batch, right leaves filled")
	in.next = next
	s.copy.pack(run[C]{s.more.keys[:n/parts], s.more.vals[:n/parts]}, high)
	if !t.commitCopy(l, s.copy, 0, lines, word, n/parts, w.gen, epoch) {
		return undo()
	}
	slices.Reverse(w.bounds[told:]) // they were made from the right to the left
	for _, m := range w.bounds[told:] {
		t.noteDirty(m.leaf)
	}
	t.note(StepSplit, w.bounds[told].key, x, w.bounds[told].leaf)
	return true
}

// take takes one of the promised leaves, and reports whether there was one.
func (p *promises) take() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left--
	return p.left >= 0
}
