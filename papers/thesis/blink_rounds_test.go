package thesis

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// blinkMeeting is how the operations of a round meet.
type blinkMeeting struct {
	name  string
	n     int    // entries before, in full leaves
	keys  uint64 // keys are below this one, for each operation of the round
	fixed bool   // keys are below this one, however many operations there are
	hot   int    // so many of a hundred operations are on one key
	spare int    // nodes that are left beside those of the entries; 0 for all
}

var blinkMeetings = []blinkMeeting{
	{"uniform", 2000, 64, false, 0, 0},
	{"hot leaves", 64, 40, true, 0, 0},
	{"one leaf", 8, 12, true, 0, 0},
	{"one key", 0, 100, true, 100, 0},
	{"a hot key", 300, 4, false, 30, 0},
	{"from nothing", 0, 1 << 20, false, 0, 0},
	{"all leaves split", 4000, 3, false, 0, 0},
	{"little memory", 500, 8, false, 5, 9},
}

// blinkRounds are trees of every shape, which take turns.
type blinkRounds struct {
	wide   []*Blink[uint64]
	narrow []*Blink[uint32]
}

// newBlinkRounds returns trees with memory for so many nodes each. Beside those
// with side links there is a B+-tree of each width.
func newBlinkRounds(t testing.TB, d device.Device, nodes int) *blinkRounds {
	t.Helper()
	set, err := kernel.LoadOnly(d, BlinkSource)
	must(t, err)
	r := &blinkRounds{}
	for i, order := range []int{16, 32, 16} {
		w, err := NewBlinkOf[uint64](d, set, order, nodes)
		must(t, err)
		n, err := NewBlinkOf[uint32](d, set, order, nodes)
		must(t, err)
		if i == 2 {
			w.Tree.How, n.Tree.How = 0, 0
		}
		r.wide, r.narrow = append(r.wide, w), append(r.narrow, n)
	}
	t.Cleanup(func() {
		for i := range r.wide {
			if err := errors.Join(r.wide[i].Close(), r.narrow[i].Close()); err != nil {
				t.Error(err)
			}
		}
		if err := set.Unload(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// round plays the round of a number, with about so many operations.
func (r *blinkRounds) round(start uint64, i, ops int) (string, func() error) {
	rng := rand.New(rand.NewPCG(start+uint64(i), 6))
	m := blinkMeetings[i%len(blinkMeetings)]
	tree := i / len(blinkMeetings) % 6
	if m.fixed {
		ops = min(ops/4, 4096) // they wait for one another, and take much longer
	}
	ops = max(1, ops/2+rng.IntN(ops))
	what := fmt.Sprintf("round %d, seed %d: %s, %d operations, tree %d", i, start+uint64(i), m.name, ops, tree)
	if tree < 3 {
		return what, func() error { return meet(r.wide[tree], rng, m, ops) }
	}
	return what, func() error { return meet(r.narrow[tree-3], rng, m, ops) }
}

// meet plays a round: it loads a tree, carries a batch out by one of the
// kernels, and checks the tree and that no value is lost or made up.
func meet[C simd.Code](b *Blink[C], rng *rand.Rand, m blinkMeeting, ops int) error {
	return meetAs(b, rng, m, ops, rng.IntN(4))
}

// meetAs is meet with a kernel: 0 is that of sets, 1 that of gets, others are
// that of both.
func meetAs[C simd.Code](b *Blink[C], rng *rand.Rand, m blinkMeeting, ops, kind int) error {
	all := b.Tree.Capacity
	defer func() { b.Tree.Capacity = all }()
	b.Shape.Block = []int{32, 64, 256}[rng.IntN(3)]
	b.Tree.How = b.Tree.How&BlinkLinks | uint32(rng.IntN(4))*BlinkPeeks // and BlinkTops
	if b.Shape.Tile = 0; b.Shape.Order == 16 {
		b.Shape.Tile = 8 * rng.IntN(2)
	}
	below := m.keys
	if !m.fixed {
		below *= uint64(ops)
	}
	keys, vals := ascending[C](m.n, max(1, below/uint64(m.n+1)))
	if err := b.Load(keys, vals, b.Shape.Order); err != nil {
		return err
	}
	if m.spare > 0 {
		b.Tree.Capacity = blinkNodes(m.n, b.Shape.Order) + uint32(m.spare)
	}
	batch := drawBlink[C](rng, ops, below, m.hot)
	for i := range batch.vals {
		batch.vals[i] = C(i)<<1 | C(1)<<30 // no two are the same, nor the same as one of those before
	}
	return conserve(b, keys, vals, batch, kind)
}

// blinkNodes returns how many nodes a tree of n entries in full nodes has.
func blinkNodes(n, order int) uint32 {
	nodes := 1
	for n > order {
		n = (n-1)/order + 1
		nodes += n
	}
	return uint32(nodes)
}

// conserve carries out a batch by one of the kernels, and checks the answers and
// the tree.
func conserve[C simd.Code](b *Blink[C], keys, vals []C, batch blinkBatch[C], kind int) (err error) {
	was := slices.Clone(batch.vals)
	var outcomes []BlinkOutcome
	switch kind {
	case 0:
		batch.ops = slices.Repeat([]BlinkOp{BlinkSet}, len(batch.ops))
		outcomes, err = b.Put(batch.keys, was)
	case 1:
		batch.ops = make([]BlinkOp, len(batch.ops))
		outcomes, err = b.Get(batch.keys, was)
	default:
		outcomes, err = b.Apply(batch.ops, batch.keys, was)
	}
	if err != nil {
		return err
	}
	im, err := b.Image()
	if err != nil {
		return err
	}
	after, afterVals, err := im.Check()
	if err != nil {
		return err
	}
	l := &blinkLedger[C]{keys, vals, batch, was, outcomes}
	return l.check(after, afterVals, im.NoRoom)
}

// blinkLedger is a batch with what there was before, and what came of it.
type blinkLedger[C simd.Code] struct {
	keys, vals []C // before
	batch      blinkBatch[C]
	was        []C
	outcomes   []BlinkOutcome
}

type blinkPair[C simd.Code] struct{ key, val C }

// check follows values: each that was there or was set is found by one operation
// that replaces or deletes it, or is there at the end. That takes time in
// proportion to the operations, where to look for an order of them does not, and
// it is wrong if a set is lost, done twice or done to another key.
func (l *blinkLedger[C]) check(after, afterVals []C, noRoom bool) error {
	taken, gone := l.made()
	take := func(p blinkPair[C]) error {
		if was, ok := taken[p]; !ok || was {
			return fmt.Errorf("key %d: the value %d is from nowhere, or was found twice", p.key, p.val)
		}
		taken[p] = true
		return nil
	}
	for i, k := range l.batch.keys {
		op, outcome, p := l.batch.ops[i], l.outcomes[i], blinkPair[C]{k, l.was[i]}
		_, known := taken[p]
		var err error
		switch {
		case outcome == BlinkNoRoom && op == BlinkSet && noRoom:
		case outcome == BlinkAbsent && gone[k]:
		case outcome == BlinkFound && op == BlinkGet && known:
		case outcome == BlinkFound && op != BlinkGet:
			err = take(p)
		default:
			err = fmt.Errorf("key %d: operation %d has the outcome %d, and found %d", k, op, outcome, l.was[i])
		}
		if err != nil {
			return err
		}
	}
	for i, k := range after {
		if err := take(blinkPair[C]{k, afterVals[i]}); err != nil {
			return err
		}
	}
	for p, yes := range taken {
		if !yes {
			return fmt.Errorf("key %d: the value %d is lost", p.key, p.val)
		}
	}
	return nil
}

// made returns all values that there were at some time, and the keys that at
// some time were not there.
func (l *blinkLedger[C]) made() (vals map[blinkPair[C]]bool, gone map[C]bool) {
	vals, gone = map[blinkPair[C]]bool{}, map[C]bool{}
	for _, k := range l.batch.keys {
		gone[k] = true
	}
	for i, k := range l.keys {
		vals[blinkPair[C]{k, l.vals[i]}] = false
		delete(gone, k)
	}
	for i, k := range l.batch.keys {
		switch {
		case l.batch.ops[i] == BlinkSet && l.outcomes[i] != BlinkNoRoom:
			vals[blinkPair[C]{k, l.batch.vals[i]}] = false
		case l.batch.ops[i] == BlinkDelete && l.outcomes[i] == BlinkFound:
			gone[k] = true
		}
	}
	return vals, gone
}

// TestBlinkRounds plays the rounds that TestBlinkRoundsOnGPU plays, on the
// interpreter.
func TestBlinkRounds(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the interpreter runs on one goroutine, slowly")
	}
	d := ptx.New(ptx.Steps(1<<28), ptx.RaceCheck(false))
	t.Cleanup(func() { d.Close() })
	r := newBlinkRounds(t, d, 4096)
	start := seed.Of(t)
	for i := range seed.Count(6 * len(blinkMeetings)) {
		ptx.Seed(start + uint64(i))(d)
		what, play := r.round(start, i, 48)
		if err := play(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}
