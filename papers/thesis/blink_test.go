package thesis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// latchSchedules are the modes that latched trees are tried under.
var latchSchedules = []struct {
	name string
	opts []ptx.Option
}{
	{"random", []ptx.Option{ptx.Weak(true), ptx.Strict(true)}},
	{"PCT 3", []ptx.Option{ptx.Weak(true), ptx.Strict(true), ptx.PCT(3)}},
	{"PCT 12", []ptx.Option{ptx.Strict(true), ptx.PCT(12)}},
	{"holders freeze", []ptx.Option{ptx.Weak(true), ptx.Strict(true), ptx.FreezeHolders(true)}},
	{"freeze, not weak", []ptx.Option{ptx.Strict(true), ptx.FreezeHolders(true)}},
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// blinkBatch is a batch of operations.
type blinkBatch[C simd.Code] struct {
	ops        []BlinkOp
	keys, vals []C
}

// drawBlink draws n operations on keys below a bound, which decides how often
// they meet; hot of a hundred are on one key. One to four of five are gets or
// deletes, the others sets. Values are never used twice.
func drawBlink[C simd.Code](rng *rand.Rand, n int, below uint64, hot int) (b blinkBatch[C]) {
	one := C(rng.Uint64N(below))
	kinds := []BlinkOp{BlinkGet, BlinkGet, BlinkDelete, BlinkGet, BlinkSet, BlinkSet, BlinkSet, BlinkSet}
	first := rng.IntN(4)
	kinds = kinds[first : first+5]
	for i := range n {
		k := C(rng.Uint64N(below))
		if rng.IntN(100) < hot {
			k = one
		}
		b.ops = append(b.ops, kinds[rng.IntN(5)])
		b.keys, b.vals = append(b.keys, k), append(b.vals, C(rng.Uint32()<<8)|C(i))
	}
	return b
}

// entriesOf checks a tree and returns what is in it.
func entriesOf[C simd.Code](b *Blink[C]) (map[C]C, error) {
	im, err := b.Image()
	if err != nil {
		return nil, err
	}
	keys, vals, err := im.Check()
	m := map[C]C{}
	for i, k := range keys {
		m[k] = vals[i]
	}
	return m, err
}

// tryBlink applies a batch and checks every answer and every entry.
func tryBlink[C simd.Code](b *Blink[C], batch blinkBatch[C]) error {
	before, err := entriesOf(b)
	if err != nil {
		return err
	}
	was := slices.Clone(batch.vals)
	outcomes, err := b.Apply(batch.ops, batch.keys, was)
	if err != nil {
		return err
	}
	after, err := entriesOf(b)
	if err != nil {
		return err
	}
	return explainAll(before, after, batch.ops, batch.keys, batch.vals, was, outcomes, BlinkTile)
}

// newBlink returns a tree on an interpreter.
func newBlink[C simd.Code](t testing.TB, order, nodes int, opts ...ptx.Option) (*ptx.Device, *Blink[C]) {
	t.Helper()
	d := ptx.New(append([]ptx.Option{ptx.Steps(1 << 26)}, opts...)...)
	b, err := NewBlink[C](d, order, nodes)
	must(t, err)
	t.Cleanup(func() { b.Close(); d.Close() })
	return d, b
}

// ascending returns n keys that are a step apart, and values.
func ascending[C simd.Code](n int, step uint64) (keys, vals []C) {
	for i := range n {
		keys, vals = append(keys, C(uint64(i)*step)), append(vals, C(i)<<1|1)
	}
	return keys, vals
}

// TestBlinkLoad tests the bulk insert, lookups and ranges at every size around
// the borders of nodes.
func TestBlinkLoad(t *testing.T) {
	t.Run("32x16", func(t *testing.T) { blinkLoad[uint32](t, 16) })
	t.Run("32x32", func(t *testing.T) { blinkLoad[uint32](t, 32) })
	t.Run("64x16", func(t *testing.T) { blinkLoad[uint64](t, 16) })
	t.Run("64x32", func(t *testing.T) { blinkLoad[uint64](t, 32) })
}

func blinkLoad[C simd.Code](t *testing.T, order int) {
	_, b := newBlink[C](t, order, 256)
	blinkLoads(t, b)
}

func blinkLoads[C simd.Code](t *testing.T, b *Blink[C]) {
	t.Helper()
	order, rng := b.Shape.Order, seed.Rand(t)
	for _, fill := range []int{2, order/2 + 1, order} {
		for _, n := range []int{0, 1, fill, fill + 1, fill*fill + 1, 90} {
			if n > 100*fill {
				continue
			}
			keys, vals := ascending[C](n, 3)
			must(t, b.Load(keys, vals, fill))
			got, err := entriesOf(b)
			must(t, err)
			if len(got) != n {
				t.Fatalf("fill %d: %d entries of %d", fill, len(got), n)
			}
			batch := blinkBatch[C]{ops: make([]BlinkOp, 40)}
			for range batch.ops {
				batch.keys, batch.vals = append(batch.keys, C(rng.Uint64N(uint64(3*n+3)))), append(batch.vals, 0)
			}
			must(t, tryBlink(b, batch))
			blinkRanges(t, b, keys, vals, rng)
		}
	}
}

// blinkRanges compares ranges with those of sorted entries.
func blinkRanges[C simd.Code](t *testing.T, b *Blink[C], keys, vals []C, rng *rand.Rand) {
	t.Helper()
	const limit = 37
	of := []BlinkRange[C]{{0, ^C(0)}, {5, 4}, {^C(0), ^C(0)}}
	for range 20 {
		low := C(rng.Uint64N(uint64(3*len(keys) + 3)))
		of = append(of, BlinkRange[C]{low, low + C(rng.IntN(120))})
	}
	gotK, gotV, err := b.Ranges(of, limit)
	must(t, err)
	for i, r := range of {
		var wantK, wantV []C
		for j, k := range keys {
			if k >= r.Low && k <= r.High && len(wantK) < limit {
				wantK, wantV = append(wantK, k), append(wantV, vals[j])
			}
		}
		if !slices.Equal(gotK[i], wantK) || !slices.Equal(gotV[i], wantV) {
			t.Fatalf("%d entries, range %v: %v, want %v", len(keys), r, gotK[i], wantK)
		}
	}
}

// TestBlink tests batches of mixed operations on each kernel, under every
// schedule: shapes that split nodes and grow the tree, and such that all meet in
// one leaf, or on one key.
func TestBlink(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the interpreter runs on one goroutine, slowly")
	}
	for _, s := range latchSchedules {
		t.Run(s.name, func(t *testing.T) {
			t.Run("32x16", func(t *testing.T) { blinkSeeds[uint32](t, 16, 1, s.opts) })
			t.Run("32x32", func(t *testing.T) { blinkSeeds[uint32](t, 32, 1, s.opts) })
			t.Run("64x16", func(t *testing.T) { blinkSeeds[uint64](t, 16, 1, s.opts) })
			t.Run("64x32", func(t *testing.T) { blinkSeeds[uint64](t, 32, 1, s.opts) })
			t.Run("64x16 B+", func(t *testing.T) { blinkSeeds[uint64](t, 16, 0, s.opts) })
			t.Run("32x32 peeks", func(t *testing.T) { blinkSeeds[uint32](t, 32, 1|BlinkPeeks, s.opts) })
			t.Run("64x16 peeks, tops", func(t *testing.T) { blinkSeeds[uint64](t, 16, 1|BlinkPeeks|BlinkTops, s.opts) })
			t.Run("64x16 B+ peeks", func(t *testing.T) { blinkSeeds[uint64](t, 16, BlinkPeeks, s.opts) })
		})
	}
}

func blinkSeeds[C simd.Code](t *testing.T, order int, how uint32, opts []ptx.Option) {
	start := seed.Of(t)
	if !seed.Long() && start%3 > 0 {
		t.Skip("another run takes this shape under this schedule")
	}
	d, b := newBlink[C](t, order, 128, opts...)
	b.Tree.How, b.Shape.Block = how, 32
	for i := range uint64(seed.Count(2)) {
		ptx.Seed(start + i)(d)
		if err := blinkSeed(b, start+i); err != nil {
			t.Fatalf("seed %d: %v", start+i, err)
		}
	}
}

// blinkSeed tries one of a few shapes of trees and batches.
func blinkSeed[C simd.Code](b *Blink[C], s uint64) error {
	rng := rand.New(rand.NewPCG(s, 2))
	shape := []struct {
		n    int // entries before, a leaf or two: they are full
		keys uint64
		hot  int
	}{{b.Shape.Order, 200, 0}, {4 * b.Shape.Order, 400, 0}, {b.Shape.Order, 20, 0}, {0, 100, 60}, {b.Shape.Order * b.Shape.Order, 3000, 0}}[rng.IntN(5)]
	keys, vals := ascending[C](shape.n, 3)
	if err := b.Load(keys, vals, b.Shape.Order); err != nil {
		return err
	}
	if err := tryBlink(b, drawBlink[C](rng, 48, shape.keys, shape.hot)); err != nil {
		return fmt.Errorf("%d entries, keys below %d, %d %% on one: %w", shape.n, shape.keys, shape.hot, err)
	}
	return nil
}

// TestBlinkGrows tests a tree that grows from nothing to several levels, on
// plain memory, without the check for races, which would take most of the time.
func TestBlinkGrows(t *testing.T) {
	rng := seed.Rand(t)
	_, b := newBlink[uint64](t, 16, 1024, ptx.RaceCheck(false))
	for range 3 {
		must(t, tryBlink(b, drawBlink[uint64](rng, 500, 1<<60, 0)))
	}
	im, err := b.Image()
	must(t, err)
	root, err := im.node(0)
	must(t, err)
	if root.level < 2 {
		t.Errorf("%d nodes on %d levels", im.Used, root.level+1)
	}
}

// TestBlinkFull tests that a tree without memory says so and stays what it is:
// keys that are there can still be set, and others deleted.
func TestBlinkFull(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the interpreter runs on one goroutine, slowly")
	}
	start := seed.Of(t)
	for i, s := range latchSchedules {
		if !seed.Long() && (start+uint64(i))%3 > 0 {
			continue
		}
		d, b := newBlink[uint32](t, 16, 7, s.opts...)
		b.Shape.Block = 32
		for j := range uint64(seed.Count(1)) {
			ptx.Seed(start + j)(d)
			rng := rand.New(rand.NewPCG(start+j, uint64(i)))
			keys, vals := ascending[uint32](2*16, 3)
			must(t, b.Load(keys, vals, 16))
			full := false
			for range 3 {
				if err := tryBlink(b, drawBlink[uint32](rng, 96, 1<<20, 5)); err != nil {
					t.Fatalf("%s, seed %d: %v", s.name, start+j, err)
				}
				im, err := b.Image()
				must(t, err)
				full = full || im.NoRoom
			}
			if !full {
				t.Errorf("%s: 288 operations fit in 7 nodes", s.name)
			}
		}
	}
}
