package live

import (
	"errors"
	"fmt"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/twin"
)

// solo is a Tree that is on a GPU alone. Methods that return an error return
// the GPU's; the others panic when the GPU is lost, since they have no right
// answer.
type solo[C order.Code] struct {
	*twin.Solo[C]
	key     order.Type
	workers int
	where   index.Device
}

// loadSolo makes a map on a GPU alone, of n entries.
func loadSolo[C order.Code](l *loading) (Tree, error) {
	m := l.Map
	if m.apart != nil || m.cfg.Device.Kind != index.GPU {
		return nil, errAlone()
	}
	if driver == nil {
		return nil, index.Problem(index.ErrNoDevice, "DeviceOnly: %w", index.ErrNotLinked)
	}
	entries := &soloEntries[C]{key: m.key.Type, workers: m.workers, n: l.n}
	entries.fill = func(lo int, ks, vs []C) { loadPart(l, lo, ks, vs) }
	m.where, m.why = m.cfg.Device, "asked for, without a copy in host memory"
	return driver.solo(entries, m.cfg)
}

// errAlone returns the error of a tree that cannot be on a GPU alone.
func errAlone() error {
	return index.Problem(index.ErrNoDevice, "DeviceOnly is for numbers with values of up to 8 bytes, and On(GPU(0))")
}

// soloEntries is the entries of a map that will be on a GPU alone. fill sets codes of
// keys and values to those of entries from lo on.
type soloEntries[C order.Code] struct {
	key     order.Type
	workers int
	n       int
	fill    func(lo int, ks, vs []C)
}

// newSolo makes a map on a GPU alone, of these entries.
func newSolo[C order.Code](e *soloEntries[C], cfg index.Config) (Tree, error) {
	dev, free, err := index.OpenWithin(cfg.Device.Ordinal, cfg.Room)
	if err != nil {
		return nil, index.Problem(index.ErrNoDevice, "DeviceOnly: %w; leave it out to have the tree in host memory", err)
	}
	t, err := twin.NewSolo[C](dev, twin.Options{Workers: e.workers, Room: free})
	if err != nil {
		return nil, index.Problem(index.ErrNoDevice, "DeviceOnly: %w", err)
	}
	const piece = 4 << 20
	for lo := 0; lo < e.n; lo += piece {
		hi := min(lo+piece, e.n)
		err := t.Apply(&twin.Batch[C]{N: hi - lo, Kind: op.Set, Fill: func(at int, ks, vs []C, _ []uint8) {
			e.fill(lo+at, ks, vs)
		}})
		if err != nil {
			t.Close()
			return nil, soloError(err)
		}
	}
	return &solo[C]{t, e.key, e.workers, cfg.Device}, nil
}

// loadPart sets codes of keys and values, unless they are nil, to those of entries
// from lo on. Several goroutines call it.
func loadPart[C order.Code](l *loading, lo int, ks, vs []C) {
	m := l.Map
	const few = 4 << 10 // these stay in a core's cache
	n := max(len(ks), len(vs))
	keys, vals := order.MakeKeys(m.key.Type, min(n, few)), m.val.Zeros(min(n, few))
	for at := 0; at < n; at += few {
		end := min(at+few, n)
		some := keys.Slice(0, end-at)
		l.span(lo+at, some, m.val.Part(vals, 0, end-at))
		if ks != nil {
			codesOf(ks[at:end], some)
		}
		if vs != nil {
			loadEach(l, vs[at:end], m.val.Part(vals, 0, end-at))
		}
	}
}

// soloError gives an error of a tree on a GPU alone a cause.
func soloError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, op.ErrLimit) || errors.Is(err, device.ErrOutOfMemory):
		return index.Problem(index.ErrOutOfMemory, "the GPU has no memory for this batch, and nothing of it was done: %w", err)
	case err == op.ErrClosed:
		return index.Problem(index.ErrClosed, "%w", err)
	}
	return index.Problem(index.ErrDeviceLost, "the GPU that alone held this tree is lost, and the tree with it: %w", err)
}

// must panics if a method without an error has no answer.
func (t *solo[C]) must(err error) { mustSolo(err) }

func mustSolo(err error) {
	if err != nil && err != op.ErrClosed { // of a closed tree the caller knows
		panic(fmt.Sprintf("pando: %v", soloError(err)))
	}
}

func (t *solo[C]) Down() error        { return t.Lost() }
func (t *solo[C]) DeviceBytes() int64 { return t.Solo.Bytes() }

func (t *solo[C]) Get(key order.Probe) (uint64, bool) {
	v, ok, err := t.Solo.Get(C(key.Code))
	t.must(err)
	return uint64(v), ok
}

func (t *solo[C]) single(kind op.Kind, key order.Probe, val uint64) (uint64, bool, error) {
	old, had, err := t.Single(kind, C(key.Code), C(val))
	return uint64(old), had, soloError(err)
}

func (t *solo[C]) Set(key order.Probe, val uint64) (uint64, bool, error) {
	return t.single(op.Set, key, val)
}

func (t *solo[C]) Delete(key order.Probe) (uint64, bool, error) {
	return t.single(op.Delete, key, 0)
}

// Update makes a change if the key is as it was when f was asked.
func (t *solo[C]) Update(key order.Probe, f func(old uint64, had bool, gen uint64) (uint64, bool)) (uint64, bool, error) {
	for {
		seen, err := t.Look(C(key.Code))
		if err != nil {
			return 0, false, soloError(err)
		}
		old := uint64(seen.Val)
		val, keep := f(old, seen.Had, 0)
		if !keep && !seen.Had {
			return 0, false, nil
		}
		kind := op.Delete
		if keep {
			kind = op.Set
		}
		if done, err := t.SingleIf(seen, kind, C(val)); done || err != nil {
			return old, seen.Had, soloError(err)
		}
	}
}

func (t *solo[C]) Pop(greatest bool) (order.Probe, uint64, bool, error) {
	k, v, ok, err := t.Solo.Pop(greatest)
	return order.Probe{Code: uint64(k)}, uint64(v), ok, soloError(err)
}

func (t *solo[C]) DeleteRange(lo, hi order.Probe, gone func(uint64)) (n int, err error) {
	const piece = 1 << 20
	for next, end := C(lo.Code), C(hi.Code); next <= end; {
		var from [1]int
		if err := t.Solo.Rank([]C{next}, false, from[:]); err != nil {
			return n, soloError(err)
		}
		keys, vals := make([]C, piece), make([]C, piece)
		k, err := t.Entries(from[0], keys, vals)
		if err != nil {
			return n, soloError(err)
		}
		last := k == 0
		for i, key := range keys[:k] {
			if key > end {
				k, last = i, true
				break
			}
		}
		found := make([]bool, k)
		if err := t.deleteKeys(keys[:k], found); err != nil {
			return n, soloError(err)
		}
		for i := range found {
			if found[i] {
				n++
				if gone != nil {
					gone(uint64(vals[i]))
				}
			}
		}
		if last || keys[k-1] == ^C(0) {
			break
		}
		next = keys[k-1] + 1
	}
	return n, nil
}

func (t *solo[C]) deleteKeys(keys []C, found []bool) error {
	return t.Solo.Apply(&twin.Batch[C]{N: len(keys), Kind: op.Delete,
		Fill: func(lo int, ks, _ []C, _ []uint8) { copy(ks, keys[lo:]) },
		Answer: func(lo int, _ []C, had []uint8) {
			for i, h := range had {
				found[lo+i] = h != 0
			}
		},
	})
}

func (t *solo[C]) CountsDeleted() {}

func (t *solo[C]) Apply(b *changes) error { return soloError(t.Solo.Apply(twinBatch[C](b))) }

func (t *solo[C]) GetBatch(keys order.Keys, vals []byte, size int, found []bool, _ func(lo, hi int)) int {
	g := newGathering[C](keys, vals, size, found)
	if g.n > 0 {
		t.must(t.Find(g.n, g.fill, g.answer))
	}
	return g.hits()
}

func (t *solo[C]) Rank(key order.Probe, after bool) int {
	var r [1]int
	t.must(t.Solo.Rank([]C{C(key.Code)}, after, r[:]))
	return r[0]
}

func (t *solo[C]) RankBatch(keys order.Keys, after bool, ranks []int) {
	t.must(t.Solo.Rank(codesIn[C](keys, len(ranks)), after, ranks))
}

func (t *solo[C]) Ranges(lo, hi order.Keys, limit int, offsets []int, room func(n int) (order.Keys, []byte), size int) bool {
	r := &gatheredRanges[C]{room: room, size: size}
	t.must(t.Solo.Ranges(codesIn[C](lo, lo.Len()), codesIn[C](hi, lo.Len()), limit, offsets, r.take))
	r.give()
	return true
}

func (t *solo[C]) At(i int) (order.Probe, uint64, bool) {
	var k, v [1]C
	n, err := t.Entries(i, k[:], v[:])
	t.must(err)
	return order.Probe{Code: uint64(k[0])}, uint64(v[0]), n == 1
}

// soloCursor reads some entries at a time, which are good for as long as nothing
// has changed.
type soloCursor[C order.Code] struct {
	t          *solo[C]
	pos        C
	down, end  bool
	keys, vals []C
	seq        uint64
	begin      C // pos before the last entry
}

func (t *solo[C]) Cursor() TreeCursor { return &soloCursor[C]{t: t} }

func (c *soloCursor[C]) Next() (order.Probe, uint64, bool) {
	for !c.end {
		if len(c.keys) == 0 || c.seq != c.t.Seq() {
			if !c.fill() {
				break
			}
			continue
		}
		i := 0
		if c.down {
			i = len(c.keys) - 1
		}
		key, val := c.keys[i], c.vals[i]
		if c.begin = c.pos; c.down {
			c.keys, c.vals = c.keys[:i], c.vals[:i]
			c.pos, c.end = key-1, key == 0
		} else {
			c.keys, c.vals = c.keys[1:], c.vals[1:]
			c.pos, c.end = key+1, key == ^C(0)
		}
		return order.Probe{Code: uint64(key)}, uint64(val), true
	}
	return order.Probe{}, 0, false
}

// fill reads entries from the position on, and reports whether there are any.
func (c *soloCursor[C]) fill() bool {
	const piece = 4096
	keys, vals := make([]C, piece), make([]C, piece)
	n, seq, err := c.t.Near(c.pos, c.down, keys, vals)
	c.t.must(err)
	c.keys, c.vals, c.seq = keys[:n], vals[:n], seq
	return n > 0
}

func (c *soloCursor[C]) Undo() { c.pos, c.end, c.keys = c.begin, false, nil }
func (c *soloCursor[C]) Done() {}

func (c *soloCursor[C]) Move(from index.Edge, down bool) bool {
	code, ok := edgeCode[C](from, down)
	c.pos, c.down, c.end, c.keys = code, down, false, nil
	return ok
}

func (t *solo[C]) Shown() any   { return t.Solo }
func (t *solo[C]) Bytes() int64 { return 0 }       // of host memory
func (t *solo[C]) Close()       { t.Solo.Close() } // errors of a GPU that is given back do not matter

var (
	_ Tree          = (*solo[uint64])(nil)
	_ OnGPU         = (*solo[uint64])(nil)
	_ DeleteCounter = (*solo[uint64])(nil)
	_ Ranger        = (*solo[uint64])(nil)
	_ Valued        = (*solo[uint64])(nil)
	_ Vectored      = (*solo[uint64])(nil)
)
