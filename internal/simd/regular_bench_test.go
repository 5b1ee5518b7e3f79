package simd

import (
	"flag"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/seed"
)

var benchPairs = flag.Int("pairs", 16<<20, "pairs in the trees of BenchmarkRegular")

// BenchmarkRegular looks random keys up in regular trees and, for comparison,
// in an implicit one, in turns: on a machine that is busy with other things,
// times differ more from run to run than between trees. It reports the time
// per key of a quick batch, and its ratio to the implicit tree's.
func BenchmarkRegular(b *testing.B) {
	for _, p := range Paths()[1:] {
		b.Run(p.String(), func(b *testing.B) {
			defer Use(p)()
			b.Run("32", benchRegular[uint32])
			b.Run("64", benchRegular[uint64])
		})
	}
}

// contender is a way to look keys up.
type contender[C Code] struct {
	name  string
	batch int // keys that are short enough to take that others rarely interrupt
	get   func(keys, vals []C, found []bool) (hits int)
}

func benchRegular[C Code](b *testing.B) {
	rng := seed.Rand(b)
	all := spread[C](*benchPairs)
	var blocks []*arena.Block
	take := func(sizes ...int) *arena.Block {
		block, err := arena.New(sizes, 0, arena.HugeAll, 0)
		if err != nil {
			b.Skip(err)
		}
		blocks = append(blocks, block)
		return block
	}
	tree := implicitPairs(all, take)
	contenders := []contender[C]{
		{"implicit", 8192, func(keys, vals []C, found []bool) int { return GetPairs(tree, keys, vals, found) }},
		{"implicit-single", 256, func(keys, _ []C, _ []bool) int { return oneByOne(tree, keys) }},
	}
	again := make([]int32, 8192)
	for _, percent := range []int{100, 70} {
		full := regularPairs(all, percent, rng, take)
		for _, distance := range []uint64{16, 24, 32, 48} {
			r := *full
			r.Distance = distance
			contenders = append(contenders, contender[C]{fmt.Sprintf("%d%%-full-%d", percent, distance), 8192, func(keys, vals []C, found []bool) int {
				hits, _ := GetRegular(&r, keys, vals, found, again)
				return hits
			}})
		}
		contenders = append(contenders, contender[C]{fmt.Sprintf("%d%%-full-single", percent), 256, func(keys, _ []C, _ []bool) int { return oneByOneRegular(full, keys, all) }})
	}
	race(b, all, contenders, rng)
	for _, block := range blocks {
		block.Release()
	}
}

// oneByOne searches for keys, each when the search before is done: it measures
// how long one takes, not how many overlap.
func oneByOne[C Code](tree *Tree, keys []C) (hits int) {
	after := 0 // 0, but that is known only then
	for _, k := range keys {
		rank, ok := Seek(tree, k+C(after))
		if after = int(uint64(rank) >> 62); ok {
			hits++
		}
	}
	return hits
}

// oneByOneRegular does the same in a regular tree.
func oneByOneRegular[C Code](r *Regular, keys []C, all spread[C]) (hits int) {
	var after C
	for _, k := range keys {
		leaf, line, _ := SeekRegular(r, k+after)
		val, ok := regularPair(unsafe.Add(r.Blocks, (int(leaf)*RegularFanout+line)*LineBytes), k)
		if after = val ^ all.val(k); ok {
			hits++
		}
	}
	return hits
}

// race lets contenders take turns at batches of random keys, never the same
// ones, which might still be in a cache.
func race[C Code](b *testing.B, all spread[C], contenders []contender[C], rng *rand.Rand) {
	const turn = 32
	times := make([][]time.Duration, len(contenders))
	for b.Loop() {
		for _, c := range rng.Perm(len(contenders)) {
			who := contenders[c]
			keys, vals, found := make([]C, who.batch), make([]C, who.batch), make([]bool, who.batch)
			for k := range turn {
				for i := range keys {
					keys[i] = all.key(rng.IntN(int(all)))
				}
				start := time.Now()
				hits := who.get(keys, vals, found)
				if k >= turn/2 { // before, the caches hold what others left
					times[c] = append(times[c], time.Since(start))
				}
				if hits != len(keys) {
					b.Fatalf("%s: %d of %d keys found", who.name, hits, len(keys))
				}
			}
		}
	}
	b.ReportMetric(0, "ns/op") // a turn of all says nothing
	for c, who := range contenders {
		b.ReportMetric(quick(times[c])/float64(who.batch), who.name+"-ns")
		b.ReportMetric(quick(times[c])/float64(who.batch)/quick(times[0])*float64(contenders[0].batch), who.name+"-ratio")
	}
}

// quick returns the time that one batch in five does not exceed, in
// nanoseconds.
func quick(times []time.Duration) float64 {
	slices.Sort(times)
	return float64(times[len(times)/5].Nanoseconds())
}

// spread is a number of keys that are spread over all there are, somewhat
// irregularly.
type spread[C Code] int

func (n spread[C]) key(i int) C {
	step := ^C(0) / C(n)
	return C(i)*step + C(uint64(i)*0x9e3779b97f4a7c15>>20)%step
}

// last returns the greatest of the keys before a number, or the maximum behind
// the end.
func (n spread[C]) last(before int) C {
	if before >= int(n) {
		return ^C(0)
	}
	return n.key(before - 1)
}

func (n spread[C]) val(key C) C { return ^key }

// implicitPairs builds what package implicit does.
func implicitPairs[C Code](all spread[C], take func(sizes ...int) *arena.Block) *Tree {
	slots := nodeKeys[C]()
	per := slots / 2
	t := &Tree{Fanout: uint64(slots + 1), Len: uint64(all), LeafMask: 1<<per - 1, LeafShift: uint64(bits.TrailingZeros(uint(per))), Distance: 32}
	leaves := (int(all) + per - 1) / per
	var counts []int
	inner := 0
	for n := leaves; n > 1; {
		n = (n + slots) / (slots + 1)
		counts = append([]int{n}, counts...)
		inner += n
	}
	t.Levels = len(counts)
	t.Base = unsafe.Pointer(&take((inner + leaves) * LineBytes).Memory()[0])
	place, below := 0, int(math.Round(math.Pow(float64(slots+1), float64(t.Levels))))*per // pairs below a node
	for l, n := range counts {
		if t.Top == l && n*LineBytes <= 256<<10 {
			t.Top++
		}
		below /= slots + 1
		for x := range n {
			for j, node := 0, nodeAt[C](t, uint64(place+8*x)); j < slots; j++ {
				node[j] = all.last((x*(slots+1) + j + 1) * below)
			}
		}
		t.Next[l] = int64(place + 8*n - (slots+1)*place)
		place += 8 * n
	}
	t.Leaves, t.LastLeaf = uint64(place), uint64(place+8*(leaves-1))
	for i := range int(all) {
		node := nodeAt[C](t, t.Leaves+uint64(i/per*8))
		node[i%per], node[per+i%per] = all.key(i), all.val(all.key(i))
	}
	return t
}

// regularPairs builds a regular tree whose nodes are as full as told, and are
// numbered at random, so that they do not lie in the order of their keys.
func regularPairs[C Code](all spread[C], percent int, rng *rand.Rand, take func(sizes ...int) *arena.Block) *Regular {
	perLeaf, fan := RegularFanout*pairsPerLine[C]()*percent/100, RegularFanout*percent/100
	counts := []int{(int(all) + perLeaf - 1) / perLeaf} // leaves first
	uppers := 0
	for counts[len(counts)-1] > 1 {
		counts = append(counts, (counts[len(counts)-1]+fan-1)/fan)
		uppers += counts[len(counts)-1]
	}
	block := take(uppers*RegularUpper[C](), counts[0]*RegularPilot[C](), counts[0]*RegularBlock)
	at := func(segment int) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(block.Segment(segment))) }
	r := &Regular{Uppers: at(0), Pilots: at(1), Blocks: at(2), Height: uint64(len(counts) - 1)}
	below := numbers(counts[0], rng)
	for i, x := range below {
		pilot := unsafe.Add(r.Pilots, int(x)*RegularPilot[C]())
		fillEvenly(pilot, unsafe.Add(r.Blocks, int(x)*RegularBlock), all, i*perLeaf, perLeaf)
	}
	free, span := numbers(uppers, rng), perLeaf
	for _, n := range counts[1:] {
		level := free[:n]
		free = free[n:]
		for i, x := range level {
			node := unsafe.Add(r.Uppers, int(x)*RegularUpper[C]())
			seps, refs := RegularSeps[C](node), RegularRefs[C](node)
			for j := range RegularFanout {
				child := i*fan + min(j, fan-1)
				seps[j], refs[j] = all.last((child+1)*span), below[min(child, len(below)-1)]
			}
			setIndex(node, seps)
		}
		below, span = level, span*fan
	}
	r.Root = uint64(below[0])
	return r
}

// fillEvenly puts pairs into all lines of a leaf, about as many into each.
func fillEvenly[C Code](pilot, block unsafe.Pointer, all spread[C], first, n int) {
	per, seps := pairsPerLine[C](), RegularSeps[C](pilot)
	for j := range RegularFanout {
		from, to := first+n*j/RegularFanout, first+n*(j+1)/RegularFanout
		line := unsafe.Slice((*C)(unsafe.Add(block, j*LineBytes)), 2*per)
		for i := range per {
			line[i] = all.key(min(from+i, to-1, int(all)-1))
			line[per+i] = all.val(line[i])
		}
		seps[j] = all.last(to)
	}
	setIndex(pilot, seps)
}
