package index

import (
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/twin"
	"github.com/pando-index/pando/internal/vector"
)

// twinned is a keyMap whose large batches run on a GPU that has a twin of the
// tree. What reads the tree in host memory waits until everything that was
// accepted is there.
type twinned[C order.Code] struct {
	*codes[C]
	twin *twin.Twin[C]
}

// onGPUMap is a keyMap that has a GPU.
type onGPUMap interface {
	down() error
	deviceBytes() int64
}

// leastOps is the number of operations from which on a batch goes to the GPU.
const leastOps = 32 << 10

// attachCodes gives a tree a twin on a GPU, if that is asked for. It returns where
// batches run, and why.
func attachCodes[C order.Code](c *codes[C], cfg Config) (keyMap, Device, string, error) {
	asked := cfg.Device
	switch asked.Kind {
	case CPU, Auto:
		return c, onCPU, "a tree that changes is on the CPU unless a GPU is asked for", nil
	case Hybrid:
		return attachMirror(c, cfg)
	}
	dev, free, err := openWithin(asked.Ordinal, cfg.Room)
	if err != nil {
		where, why, err := withoutGPU(asked, err)
		return c, where, why, err
	}
	opts := twin.Options{Workers: c.workers, Least: leastOps, Room: free, Changes: cfg.Limit == 0}
	if !PreferCPU {
		opts.Least = 1
	}
	t, err := twin.New(c.Tree, dev, opts)
	if err != nil {
		where, why, err := withoutGPU(asked, err)
		return c, where, why, err
	}
	return &twinned[C]{c, t}, asked, reasonAsked, nil
}

func (t *twinned[C]) down() error        { return t.twin.Down() }
func (t *twinned[C]) deviceBytes() int64 { return t.twin.DeviceBytes() }

func (t *twinned[C]) get(key order.Probe) (uint64, bool) {
	v, ok := t.twin.Get(C(key.Code))
	return uint64(v), ok
}

func (t *twinned[C]) set(key order.Probe, val uint64) (old uint64, had bool, err error) {
	t.twin.Single(C(key.Code), func() bool {
		old, had, err = t.codes.set(key, val)
		return err == nil
	})
	return old, had, err
}

func (t *twinned[C]) remove(key order.Probe) (old uint64, had bool, err error) {
	t.twin.Single(C(key.Code), func() bool {
		old, had, err = t.codes.remove(key)
		return err == nil && had
	})
	return old, had, err
}

// update asks f without holding anything, since f may use the tree; the change is
// made if the value is still the same.
func (t *twinned[C]) update(key order.Probe, f func(old uint64, had bool, gen uint64) (uint64, bool)) (old uint64, had bool, err error) {
	for done := false; !done && err == nil; {
		old, had = t.get(key)
		val, keep := f(old, had, t.Gen())
		t.twin.Single(C(key.Code), func() (changed bool) {
			now, there := t.codes.get(key)
			if done = now == old && there == had; !done {
				return false
			}
			switch {
			case keep:
				_, _, err = t.codes.set(key, val)
			case had:
				_, _, err = t.codes.remove(key)
			}
			return err == nil && (keep || had)
		})
	}
	return old, had, err
}

func (t *twinned[C]) pop(greatest bool) (key order.Probe, val uint64, ok bool, err error) {
	t.twin.Alone(func() []C {
		if key, val, ok, err = t.codes.pop(greatest); !ok || err != nil {
			return nil
		}
		return []C{C(key.Code)}
	})
	return key, val, ok, err
}

func (t *twinned[C]) deleteRange(lo, hi order.Probe, gone func(uint64)) (n int, err error) {
	t.twin.Alone(func() []C {
		keys := t.keysIn(C(lo.Code), C(hi.Code))
		n, err = t.codes.deleteRange(lo, hi, gone)
		return keys
	})
	return n, err
}

// keysIn returns the keys from lo to hi of the tree in host memory.
func (t *twinned[C]) keysIn(lo, hi C) (keys []C) {
	c := t.Tree.Ascend(lo)
	defer c.Done()
	for k, _, ok := c.Next(); ok && k <= hi; k, _, ok = c.Next() {
		keys = append(keys, k)
	}
	return keys
}

func (t *twinned[C]) apply(b *changes) error {
	batch := &twin.Batch[C]{N: b.keys.Len(), Kinds: b.kinds != nil, Kind: b.kind}
	batch.Fill = func(lo int, keys, vals []C, kinds []uint8) {
		hi := lo + len(keys)
		codesOf(keys, b.keys.Slice(lo, hi))
		loadVals(vals, part(b.vals, b.size, lo, hi), b.size)
		for i := range kinds {
			kinds[i] = uint8(b.kinds[lo+i])
		}
	}
	if b.found != nil {
		batch.Answer = func(lo int, old []C, had []uint8) {
			for i, h := range had {
				b.found[lo+i] = h != 0
			}
			if b.old != nil {
				storeVals(part(b.old, b.size, lo, lo+len(old)), b.size, old)
			}
		}
	}
	batch.CPU = func(lo, hi int) (keys []C, err error) {
		c := b.slice(lo, hi)
		keys = make([]C, hi-lo)
		codesOf(keys, c.keys)
		return keys, t.codes.apply(c)
	}
	return t.twin.Apply(batch)
}

// part returns the memory of values [lo, hi).
func part(vals []byte, size, lo, hi int) []byte {
	if vals == nil {
		return nil
	}
	return vals[lo*size : hi*size]
}

// slice returns operations [lo, hi).
func (b *changes) slice(lo, hi int) *changes {
	if lo == 0 && hi == b.keys.Len() {
		return b
	}
	c := *b
	c.keys, c.vals, c.old = b.keys.Slice(lo, hi), part(b.vals, b.size, lo, hi), part(b.old, b.size, lo, hi)
	if b.kinds != nil {
		c.kinds = b.kinds[lo:hi]
	}
	if b.found != nil {
		c.found = b.found[lo:hi]
	}
	return &c
}

func (t *twinned[C]) getBatch(keys order.Keys, vals []byte, size int, found []bool, use func(lo, hi int)) (hits int) {
	n := keys.Len()
	if n == 0 || !t.twin.Takes(n) && !t.twin.Pending() {
		return t.codes.getBatch(keys, vals, size, found, use)
	}
	counts := make([]int, (n+getPiece-1)/getPiece)
	ok := t.twin.Find(n, func(lo int, ks []C) { codesOf(ks, keys.Slice(lo, lo+len(ks))) }, func(lo int, vs []C, had []uint8) {
		for from := 0; from < len(vs); from += getPiece {
			to := min(from+getPiece, len(vs))
			storeVals(part(vals, size, lo+from, lo+to), size, vs[from:to])
			for i, h := range had[from:to] {
				if found != nil {
					found[lo+from+i] = h != 0
				}
				counts[(lo+from)/getPiece] += int(h)
			}
		}
	})
	if !ok {
		t.twin.Wait()
		return t.codes.getBatch(keys, vals, size, found, use)
	}
	for _, c := range counts {
		hits += c
	}
	return hits
}

func (t *twinned[C]) rank(key order.Probe, after bool) int {
	t.twin.Wait()
	return t.codes.rank(key, after)
}

func (t *twinned[C]) rankBatch(keys order.Keys, after bool, ranks []int) {
	t.twin.Wait()
	t.codes.rankBatch(keys, after, ranks)
}

func (t *twinned[C]) at(i int) (order.Probe, uint64, bool) {
	t.twin.Wait()
	return t.codes.at(i)
}

func (t *twinned[C]) readValues(lo, hi uint64, size int, r *vector.Reader) {
	t.twin.Wait()
	t.codes.readValues(lo, hi, size, r)
}

func (t *twinned[C]) selectValues(lo, hi uint64, s *selecting) {
	t.twin.Wait()
	t.codes.selectValues(lo, hi, s)
}

func (t *twinned[C]) transform(s *span, entries int, f bplus.Changer) (n int, err error) {
	t.twin.Alone(func() []C {
		n, err = t.codes.transform(s, entries, f)
		return t.keysIn(C(s.lo), C(s.hi))
	})
	return n, err
}

// Len returns the number of entries.
func (t *twinned[C]) Len() int { return t.twin.Len() }

func (t *twinned[C]) freeze() (moment, error) {
	t.twin.Wait()
	return t.codes.freeze()
}

// Check looks at the tree in host memory.
func (t *twinned[C]) Check() error {
	t.twin.Wait()
	return t.codes.Check()
}

// Close waits for what is under way.
func (t *twinned[C]) Close() {
	t.twin.Close() // what a GPU says that is given back is of no interest
	t.codes.Close()
}

// waitingCursor reads one entry at a time, each after everything that was
// accepted before.
type waitingCursor[C order.Code] struct {
	c    cursor[C]
	twin *twin.Twin[C]
}

func (t *twinned[C]) cursor() keyCursor {
	t.twin.Wait()
	return waitingCursor[C]{cursor[C]{t.Tree.Ascend(0)}, t.twin}
}

func (c waitingCursor[C]) next() (order.Probe, uint64, bool) {
	c.twin.Wait()
	return c.c.next()
}

func (c waitingCursor[C]) Again()                         { c.c.Again() }
func (c waitingCursor[C]) move(from Edge, down bool) bool { return c.c.move(from, down) }
func (c waitingCursor[C]) Done()                          { c.c.Done() }

var _ keyMap = (*twinned[uint64])(nil)
