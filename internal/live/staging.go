package live

import (
	"math/bits"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/twin"
)

// twinBatch returns a batch as a GPU takes it.
func twinBatch[C order.Code](b *changes) *twin.Batch[C] {
	past := b.keys.Len() >= pastCaches
	batch := &twin.Batch[C]{N: b.keys.Len(), Kinds: b.kinds != nil, Kind: b.kind, Old: b.old != nil, Deleted: b.deleted, Own: ownColumns[C](b)}
	batch.Fill = func(lo int, keys, vals []C, kinds []uint8) {
		if keys != nil {
			sendCodes(keys, b.keys.Slice(lo, lo+len(keys)), past)
		}
		if vals != nil {
			sendVals(vals, part(b.vals, b.size, lo, lo+len(vals)), b.size, past)
		}
		if kinds != nil {
			copy(kinds, arena.As[uint8](arena.Bytes(b.kinds[lo:])))
		}
	}
	if b.found != nil {
		batch.Answer = func(lo int, old []C, had []uint8) {
			found := b.found[lo:][:len(had)]
			for i, h := range had {
				found[i] = h != 0
			}
			if b.old != nil {
				takeVals(part(b.old, b.size, lo, lo+len(old)), b.size, old, past)
			}
		}
	}
	return batch
}

// ownColumns returns the columns of a batch that are in page-locked memory, as a GPU
// takes them.
func ownColumns[C order.Code](b *changes) (own twin.Columns[C]) {
	if raw := b.keys.Raw(); raw != nil && b.keys.Bits() == order.CodeBits[C]() && device.Shared(raw) {
		own.Keys = arena.As[C](raw)
	}
	if b.size*8 == order.CodeBits[C]() && device.Shared(b.vals) {
		own.Vals = arena.As[C](b.vals)
	}
	if kinds := arena.Bytes(b.kinds); device.Shared(kinds) {
		own.Kinds = kinds
	}
	return own
}

// pastCaches is the batch from which on copies from and to a GPU's page-locked
// memory go past the CPU's caches, where they would not stay anyway. Experiment
// gpu-endtoend.
const pastCaches = 1 << 20

// sendCodes is codesOf for memory that a GPU reads.
func sendCodes[C order.Code](dst []C, keys order.Keys, past bool) {
	if raw := keys.Raw(); past && raw != nil && keys.Bits() == order.CodeBits[C]() {
		simd.Copy(arena.Bytes(dst), raw)
		return
	}
	codesOf(dst, keys)
}

// sendVals is loadVals for memory that a GPU reads.
func sendVals[C order.Code](dst []C, vals []byte, size int, past bool) {
	if past && size*8 == order.CodeBits[C]() {
		simd.Copy(arena.Bytes(dst), vals)
		return
	}
	loadVals(dst, vals, size)
}

// takeVals is storeVals for the answers of a GPU.
func takeVals[C order.Code](vals []byte, size int, src []C, past bool) {
	if past && size*8 == order.CodeBits[C]() {
		simd.Copy(vals, arena.Bytes(src))
		return
	}
	storeVals(vals, size, src)
}

// gathering is a batch of searches on a GPU, and where their answers go.
type gathering[C order.Code] struct {
	keys  order.Keys
	vals  []byte
	size  int
	found []bool
	n     int
	past  bool // see pastCaches
	got   atomic.Int64
}

func newGathering[C order.Code](keys order.Keys, vals []byte, size int, found []bool) *gathering[C] {
	n := keys.Len()
	return &gathering[C]{keys: keys, vals: vals, size: size, found: found, n: n, past: n >= pastCaches}
}

func (g *gathering[C]) fill(lo int, keys []C) {
	sendCodes(keys, g.keys.Slice(lo, lo+len(keys)), g.past)
}

// answer stores the results for keys from lo on; found is a bit for each.
func (g *gathering[C]) answer(lo int, vals []C, found []byte) {
	n := len(vals)
	takeVals(part(g.vals, g.size, lo, lo+n), g.size, vals, g.past)
	if g.found != nil {
		g.got.Add(int64(exec.SpreadBits(g.found[lo:lo+n], found)))
		return
	}
	hits := bits.OnesCount8(found[(n-1)/8] << (-n & 7)) // bits behind the last do not count
	for _, b := range found[:(n-1)/8] {
		hits += bits.OnesCount8(b)
	}
	g.got.Add(int64(hits))
}

func (g *gathering[C]) hits() int { return int(g.got.Load()) }
