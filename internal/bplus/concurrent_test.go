package bplus

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// hasty makes memory free for reuse as early as can be, until the test ends.
func hasty(t *testing.T) {
	t.Cleanup(epoch.SetPace(0))
}

// Writers that own keys of their own find these as they have left them, readers
// find only what was written, a key never has another's value, and snapshots are
// one moment.
func TestManyGoroutines(t *testing.T) {
	hasty(t)
	rng := seed.Rand(t)
	for _, space := range []uint64{300, 5000, 1 << 40} {
		stress(t, rng.Uint64(), space, 4, seed.Lasting(200*time.Millisecond, 700*time.Millisecond))
	}
}

// The same where memory that was retired is used again at once.
func TestManyGoroutinesReuseAtOnce(t *testing.T) {
	hasty(t)
	atomic.StoreInt64(&generationsAtOnce, 2)
	t.Cleanup(func() { atomic.StoreInt64(&generationsAtOnce, 1) })
	rng := seed.Rand(t)
	for _, space := range []uint64{300, 20_000} {
		stress(t, rng.Uint64(), space, 4, seed.Lasting(200*time.Millisecond, 500*time.Millisecond))
	}
}

// The same where the sequence numbers of leaves begin again at 0.
func TestManyGoroutinesSequenceWraps(t *testing.T) {
	hasty(t)
	old := firstSequence
	t.Cleanup(func() { firstSequence = old })
	rng := seed.Rand(t)
	for _, first := range []uint64{1<<51 - 5, 1<<51 + 3, 1<<64 - 7} {
		firstSequence = func(uint64) uint64 { return first }
		stress(t, rng.Uint64(), 5000, 4, seed.Lasting(100*time.Millisecond, 300*time.Millisecond))
	}
}

// tagged returns a value that tells which key it is of.
func tagged(key, n uint64) uint64 { return (key*0x9e3779b97f4a7c15)&^0xffff | n&0xffff }

func stress(t *testing.T, start, space uint64, writers int, d time.Duration) {
	tree, err := New[uint64](0)
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	run := func(id int, f func(rng *rand.Rand)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rng := rand.New(rand.NewPCG(start, uint64(id)))
			for !stop.Load() && !t.Failed() {
				f(rng)
			}
		}()
	}
	models := make([]map[uint64]uint64, writers)
	for w := range writers {
		models[w] = map[uint64]uint64{}
		own := func(rng *rand.Rand) uint64 { return rng.Uint64N(space)/uint64(writers)*uint64(writers) + uint64(w) }
		phase := 0
		run(w, func(rng *rand.Rand) {
			phase++
			writeSome(t, tree, models[w], rng, own, phase/200%2 == 0)
		})
	}
	for r := range 3 {
		run(100+r, func(rng *rand.Rand) { readSome(t, tree, rng, space) })
	}
	for r := range 2 { // so that one is closed while another is there, or is being closed
		run(200+r, func(rng *rand.Rand) { snapshotSome(t, tree, rng) })
	}
	time.Sleep(d)
	stop.Store(true)
	wg.Wait()
	if t.Failed() {
		return
	}
	all := map[uint64]uint64{}
	for _, m := range models {
		for k, v := range m {
			all[k] = v
		}
	}
	checkModel(t, tree, all, rand.New(rand.NewPCG(start, 1)))
	tree.Close()
}

func writeSome(t *testing.T, tree *Tree[uint64], model map[uint64]uint64, rng *rand.Rand, own func(*rand.Rand) uint64, grow bool) {
	if rng.IntN(200) == 0 {
		keys := map[uint64]bool{}
		for range rng.IntN(300) {
			keys[own(rng)] = true
		}
		batchOwn(t, tree, model, rng, keys)
		return
	}
	k := own(rng)
	v := tagged(k, rng.Uint64())
	want, had := model[k]
	var old uint64
	var ok bool
	if grow == (rng.IntN(10) < 8) {
		old, ok, _ = tree.Set(k, v)
		model[k] = v
	} else {
		old, ok, _ = tree.Delete(k)
		delete(model, k)
	}
	if old != want || ok != had {
		t.Errorf("key %d was %d, %t, want %d, %t", k, old, ok, want, had)
	}
	want, had = model[k]
	if got, ok := tree.Get(k); got != want || ok != had {
		t.Errorf("key %d is %d, %t, want %d, %t", k, got, ok, want, had)
	}
}

func batchOwn(t *testing.T, tree *Tree[uint64], model map[uint64]uint64, rng *rand.Rand, set map[uint64]bool) {
	n := len(set)
	ops := &Ops[uint64]{Vals: make([]uint64, n), Kinds: make([]op.Kind, n), Old: make([]uint64, n), Found: make([]bool, n)}
	ops.Keys = sortedKeys(set)
	for i, k := range ops.Keys {
		ops.Vals[i], ops.Kinds[i] = tagged(k, rng.Uint64()), op.Kind(rng.IntN(3))
	}
	if err := tree.Apply(ops, 2); err != nil {
		t.Error(err)
	}
	for i, k := range ops.Keys {
		if want, had := model[k]; ops.Old[i] != want || ops.Found[i] != had {
			t.Errorf("batch: key %d was %d, %t, want %d, %t", k, ops.Old[i], ops.Found[i], want, had)
		}
		switch ops.Kinds[i] {
		case op.Set:
			model[k] = ops.Vals[i]
		case op.Delete:
			delete(model, k)
		}
	}
}

func readSome(t *testing.T, tree *Tree[uint64], rng *rand.Rand, space uint64) {
	n := rng.IntN(3000)
	keys, vals, found := make([]uint64, n), make([]uint64, n), make([]bool, n)
	for i := range keys {
		keys[i] = rng.Uint64N(space)
	}
	tree.GetBatch(keys, vals, found, 1, nil)
	for i, k := range keys {
		if found[i] && vals[i]&^0xffff != tagged(k, 0) || !found[i] && vals[i] != 0 {
			t.Errorf("GetBatch: key %d has value %d (%t), which is another's", k, vals[i], found[i])
		}
	}
	c, last := tree.Ascend(rng.Uint64N(space)), uint64(0)
	for i := range 500 {
		k, v, ok := c.Next()
		if !ok {
			break
		}
		if i > 0 && k <= last || v&^0xffff != tagged(k, 0) {
			t.Errorf("cursor: %d → %d after %d", k, v, last)
		}
		last = k
	}
}

// snapshotSome reads a snapshot twice: both times it is the same.
func snapshotSome(t *testing.T, tree *Tree[uint64], rng *rand.Rand) {
	s, err := tree.Snapshot()
	if err != nil {
		t.Error(err)
		return
	}
	defer s.Close()
	var sums [2]uint64
	for i := range sums {
		v, err := s.View(1)
		if err != nil {
			t.Error(err)
			return
		}
		n := v.Len()
		keys, vals := make([]uint64, n), make([]uint64, n)
		v.CopyOut(0, n, keys, vals)
		for j, k := range keys {
			if j > 0 && k <= keys[j-1] || vals[j]&^0xffff != tagged(k, 0) {
				t.Errorf("snapshot: entry %d is %d → %d", j, k, vals[j])
				return
			}
			sums[i] = sums[i]*31 + k ^ vals[j]
		}
		v.dir.Release()
		time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
	}
	if sums[0] != sums[1] {
		t.Error("a snapshot has changed")
	}
}

// seedless returns a random generator that is always the same, for tests in
// which only the order of events matters.
func seedless() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }
