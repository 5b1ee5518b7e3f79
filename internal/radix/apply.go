package radix

import (
	"sync"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/shortcut"
)

// Ops is a batch of operations. Those with one key are one change, as if they were done in
// their order.
type Ops struct {
	Keys  []string
	Kinds []op.Kind // nil where all are of kind Kind
	Kind  op.Kind
	Vals  []uint64 // of Set
	Old   []uint64 // gets the values before the operations; nil if the caller does not ask
	Found []bool   // likewise whether there was something
	// Seen, unless it is nil, is called with the value that a Get has found while it
	// is in the tree.
	Seen func(i int, val uint64)
	// Workers is how many goroutines do it at most; 0 is one. Seen is called from all
	// of them.
	Workers int

	heads []int32 // first operations on each key; nil where no two are on one (combine)
	next  []int32 // the next one on the same key, 0 for none; nil likewise
}

func (o *Ops) kind(i int) op.Kind {
	if o.Kinds != nil {
		return o.Kinds[i]
	}
	return o.Kind
}

// Apply does the operations of a batch, all or none. Others see each key change once, as it
// is done, or all at once.
//
// Memory is promised before the first change. Then a batch is many single writers, each
// of whom has the keys of some sub-trees, and other writers work beside it. Where memory
// is limited or a snapshot makes copies necessary, the batch has the tree to itself;
// and where memory cannot be promised it changes a fork.
func (t *Tree) Apply(o *Ops) error {
	t.edges.ReleaseAll()
	defer t.edges.AcquireAll()
	o.combine()
	t.batch.Lock() // from here on no snapshot is taken
	defer t.batch.Unlock()
	if t.limit.Load() == 0 && epoch.Optimistic && !t.hasSnapshots() {
		if t.Closed() {
			return op.ErrClosed
		}
		if t.promise(nil, o) == nil {
			defer t.unpromise()
			return t.applyBeside(o)
		}
	}
	return t.applyAlone(o)
}

// hasSnapshots reports whether nodes may have to be copied.
func (t *Tree) hasSnapshots() bool {
	d := t.enter()
	defer t.leave(d)
	return t.frozen != 0
}

// stockPool has empty stocks for batches.
var stockPool = sync.Pool{New: func() any { return new(stock) }}

// applyBeside does a batch beside other writers. The memory promised to it is its own: it
// takes a stock of it to the desks where it works, and leaves nothing of it there. A batch
// that is done before others come to its desk uses the desk's own stock.
func (t *Tree) applyBeside(o *Ops) error {
	n := o.changes()
	if n <= warmKeys {
		var rows [warmKeys]int32
		for i := range n {
			rows[i] = o.head(i)
		}
		return t.applyRows(o, rows[:n], nil)
	}
	stocks := make(chan *stock, max(min(o.Workers, mostDesks(), n/leastPart), 1))
	for range cap(stocks) {
		stocks <- stockPool.Get().(*stock)
	}
	defer func() {
		for range cap(stocks) {
			s := <-stocks
			t.memory.empty(s)
			stockPool.Put(s)
		}
	}()
	for lo := 0; lo < n; {
		// Once a small tree has grown it has other shortcuts, by which keys are
		// parted.
		hi := min(lo+max(leastRound, 2*t.Len()), n)
		b := newBatch(o, lo, hi, t.short.Load())
		b.run(func(part []int32) error {
			own := <-stocks
			defer func() { stocks <- own }()
			for len(part) > 0 && !b.failed() {
				n := min(len(part), warmKeys)
				if err := t.applyRows(o, part[:n], own); err != nil {
					return err
				}
				part = part[n:]
			}
			return nil
		})
		if err := b.error(); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// applyRows does the operations on a few keys beside other writers, with memory that was promised: that
// of a stock of its own, unless it is nil.
func (t *Tree) applyRows(o *Ops, rows []int32, own *stock) error {
	d := t.enter()
	defer func() {
		if t.rise(d) {
			t.renewFor(o)
		}
	}()
	d.prepaid = true
	defer func() { d.prepaid = false }()
	if own != nil {
		others := d.stock
		d.stock = own
		defer func() { d.stock = others }()
	}
	return d.apply(o, rows)
}

// renewFor makes new shortcuts where they are due. A large batch goes on by them, and so waits for them.
func (t *Tree) renewFor(o *Ops) {
	if len(o.Keys) <= warmKeys {
		t.renewLater()
	} else {
		t.renewShort()
	}
}

// leastRound is how many operations at least have their keys parted together.
const leastRound = 1 << 14

// applyAlone does a batch while there is no other writer.
func (t *Tree) applyAlone(o *Ops) error {
	defer t.renewFor(o)
	w := t.lockWrite()
	defer t.unlockWrite()
	if t.Closed() {
		return op.ErrClosed
	}
	if t.frozen == 0 && t.promise(w, o) == nil {
		defer t.unpromise()
		return t.applyAll(o, true)
	}
	t.begin()
	whole := false
	defer func() {
		if !whole { // an error, or a panic of Seen
			t.abort()
		}
	}()
	if err := t.applyAll(o, false); err != nil {
		return err
	}
	whole = true
	t.commit(w, o.Keys)
	return nil
}

// applyAll does the operations. It fails only where no memory was promised.
func (t *Tree) applyAll(o *Ops, promised bool) error {
	workers := max(o.Workers, 1)
	if t.limit.Load() > 0 && !promised {
		workers = 1 // a writer that makes room for itself must be alone
	}
	ws := t.writers(workers)
	idle := make(chan *writer, len(ws))
	deletes := o.Kinds == nil && o.Kind == op.Delete
	for _, w := range ws {
		w.prepaid, w.free = promised && !deletes, deletes // to which nothing was promised
		idle <- w
	}
	defer func() {
		for _, w := range ws {
			w.prepaid, w.free = false, false
		}
	}()
	b := newBatch(o, 0, o.changes(), t.short.Load())
	b.workers = min(b.workers, len(ws))
	b.run(func(part []int32) error {
		w := <-idle
		defer func() { idle <- w }()
		for len(part) > 0 && !b.failed() {
			n := min(len(part), warmKeys)
			if err := w.apply(o, part[:n]); err != nil {
				return err
			}
			part = part[n:]
		}
		return nil
	})
	ws[0].rest()
	return b.error()
}

// apply does the operations on a few keys.
func (w *writer) apply(o *Ops, rows []int32) error {
	var keys [warmKeys]string
	var near [warmKeys]link
	for i, row := range rows {
		keys[i] = o.Keys[row]
	}
	w.t.warm(keys[:len(rows)], &near)
	for i, row := range rows {
		if err := w.applyOne(o, row, near[i]); err != nil {
			return err
		}
	}
	return nil
}

// applyOne does the operations from one on that are on its key, on a way that begins at near.
func (w *writer) applyOne(o *Ops, head int32, near link) error {
	var c change
	o.whole(&c, head)
	if err := w.do(&c, near, 0); err != nil {
		return err
	}
	o.report(head, c.old, c.had)
	return nil
}

// warmKeys is how many keys of a batch have their nodes fetched together.
const warmKeys = 64

// warm walks the ways to some keys at once, so that their nodes come from memory together.
// Nodes above shortcuts are in the cache. It sets near to the last node but one of each way, if
// there are two: a writer of the last one may have to lock that as well.
func (t *Tree) warm(keys []string, near *[warmKeys]link) {
	e := bucketPool.Get().(*bucket)
	defer bucketPool.Put(e)
	var s *shortcut.Table
	if !t.forked {
		s = t.short.Load()
	}
	e.Find(s, keys, func(l link, i int) { askStep(&e.Asked, l, keys[i], s.Depth) })
	at := e.Links[:len(keys)]
	for i := range at {
		if at[i] == 0 {
			at[i] = load(&t.work.link)
		}
		near[i] = at[i]
	}
	for again := true; again; e.Asked.Fetch() {
		again = false
		for i, key := range keys {
			if !at[i].isInner() {
				continue
			}
			l, _ := through(at[i], key)
			switch {
			case l.isInner():
				near[i] = at[i]
				askStep(&e.Asked, l, key, int(at[i].header().depth)+1)
			case l.isLeaf():
				askStep(&e.Asked, l, key, 0)
			default: // a leaf below will have to show that this is the place
				if links := someLinks(at[i]); len(links) > 0 {
					askStep(&e.Asked, someLeaf(links), key, 0)
				}
			}
			at[i] = l
			again = true
		}
	}
}
