// Package data makes what systems are asked: keys, values and queries that
// follow from a seed, so that every answer can be checked; numbers and strings
// of several kinds and distributions, and the workloads of YCSB.
package data

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/pando-index/pando/bench/contest"
)

// Word is the type of a key and of a value: the experiments use pairs of one
// width.
type Word interface{ uint32 | uint64 }

// Dataset is n distinct uniform random keys in order, and a value for each
// that follows from the key, so that every answer can be checked.
type Dataset[W Word] struct {
	Keys, Vals []W
}

// Streams distinguish the random numbers drawn from one seed.
const (
	StreamShuffle = iota
	StreamQueries // and above: one per round

	streamPieces = 1 << 40 // and above: one per piece of a round, see DrawPieces
	streamKeys   = 1 << 41 // and above: one per piece of the keys, see SortedKeys
	streamLow    = 1 << 42 // the same
	StreamTexts  = 1 << 43 // the same, for strings; for URLs one per host
)

// NewRand returns the random numbers of one stream of a seed.
func NewRand(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// RoundRand returns a random generator for a round; round -1 is the warm-up.
func RoundRand(s *contest.Session, round int) *rand.Rand {
	return NewRand(s.Seed, StreamQueries+uint64(round+1))
}

// NewDataset makes n entries. A 32-bit domain must stay at least half empty,
// so that there are misses to ask for.
func NewDataset[W Word](s *contest.Session, n int) (*Dataset[W], error) {
	if bits := BitsOf[W](); bits == 32 && n > 1<<31 {
		return nil, fmt.Errorf("n %s: at most 2G keys of 32 bits", contest.SizeText(n))
	}
	need := int64(n) * int64(2*BitsOf[W]()/8)
	if free := contest.FreeMemory(); need > free {
		return nil, fmt.Errorf("n %s: the pairs alone need %s, %s of memory are free: use a smaller --n",
			contest.SizeText(n), contest.GiB(need), contest.GiB(free))
	}
	s.Say("making %s random keys of %d bits ...", contest.SizeText(n), BitsOf[W]())
	d := &Dataset[W]{Keys: SortedKeys[W](n, s.Seed), Vals: make([]W, n)}
	contest.Spread(contest.AllCores(), n, func(lo, hi int) int {
		for i, k := range d.Keys[lo:hi] {
			d.Vals[lo+i] = ValueOf(k)
		}
		return 0
	})
	return d, nil
}

// BitsOf returns the width of a key.
func BitsOf[W Word]() int { var w W; return int(unsafe.Sizeof(w)) * 8 }

// SortedKeys draws n uniform random keys already in order: the sums of n+1
// exponential gaps, divided by their total, are distributed as n sorted
// uniform numbers. Equal neighbors are moved apart, because keys are distinct.
// All cores draw, each piece from a stream of its own: once to know where the
// pieces begin, and once more for the keys.
func SortedKeys[W Word](n int, seed uint64) []W {
	keys := make([]W, n)
	starts := make([]float64, n/contest.DrawPiece+2)
	contest.ForPieces(n+1, func(p, lo, hi int) {
		rng, sum := NewRand(seed, streamKeys+uint64(p)), 0.0
		for range hi - lo {
			sum += rng.ExpFloat64()
		}
		starts[p+1] = sum
	})
	for p := 1; p < len(starts); p++ {
		starts[p] += starts[p-1]
	}
	total := starts[len(starts)-1]
	contest.ForPieces(n, func(p, lo, hi int) {
		rng, low := NewRand(seed, streamKeys+uint64(p)), NewRand(seed, streamLow+uint64(p))
		sum := starts[p]
		for i := lo; i < hi; i++ {
			sum += rng.ExpFloat64()
			keys[i] = scale[W](sum/total, low)
			moveApart(keys, lo, i)
		}
	})
	for seam := contest.DrawPiece; seam < n; seam += contest.DrawPiece {
		for i := seam; i < n && keys[i] <= keys[i-1]; i++ {
			keys[i] = keys[i-1] + 1
		}
	}
	return keys
}

// moveApart makes key i differ from the one before, unless it is the first of
// its piece, and leaves room below the domain's end for the keys to come.
func moveApart[W Word](keys []W, first, i int) {
	if i > first && keys[i] <= keys[i-1] {
		keys[i] = keys[i-1] + 1
	}
	keys[i] = min(keys[i], ^W(0)-W(len(keys)-1-i))
}

// scale maps [0, 1] linearly to the domain. A float64 has 53 bits: the lower
// bits of a 64-bit key are drawn at random.
func scale[W Word](x float64, low *rand.Rand) W {
	const bits = 53
	u := min(uint64(x*(1<<bits)), 1<<bits-1)
	if BitsOf[W]() == 32 {
		return W(u >> (bits - 32))
	}
	return W(u<<(64-bits) | low.Uint64()>>bits)
}

// Odd is odd, so that ValueOf returns different values for different keys.
var Odd uint64 = 0x9e3779b97f4a7c15

// ValueOf returns the value of a key.
func ValueOf[W Word](k W) W { return k*W(Odd) ^ W(Odd>>32) }

// Shuffled returns the pairs in random order.
func (d *Dataset[W]) Shuffled(seed uint64) *Dataset[W] {
	out := &Dataset[W]{Keys: slices.Clone(d.Keys), Vals: make([]W, len(d.Vals))}
	NewRand(seed, StreamShuffle).Shuffle(len(out.Keys), func(i, j int) {
		out.Keys[i], out.Keys[j] = out.Keys[j], out.Keys[i]
	})
	for i, k := range out.Keys {
		out.Vals[i] = ValueOf(k)
	}
	return out
}

// Hits fills q with keys of the set, in random order.
func (d *Dataset[W]) Hits(rng *rand.Rand, q []W) {
	for i := range q {
		q[i] = d.Keys[rng.IntN(len(d.Keys))]
	}
}

// Between fills q with numbers of random rank: from just above one key up to
// and including the next, or beyond the last.
func (d *Dataset[W]) Between(rng *rand.Rand, q []W) {
	for i := range q {
		lo, hi := d.Gap(rng.IntN(len(d.Keys) + 1))
		q[i] = lo + W(rng.Uint64N(uint64(hi-lo)+1))
	}
}

// Gap returns the first and the last number of rank r. The gap above a key
// that is the domain's last has no number: the gap below it is returned
// instead.
func (d *Dataset[W]) Gap(r int) (lo, hi W) {
	top := ^W(0)
	if r == len(d.Keys) {
		if d.Keys[r-1] != top {
			return d.Keys[r-1] + 1, top
		}
		r--
	}
	if r > 0 {
		lo = d.Keys[r-1] + 1
	}
	return lo, d.Keys[r]
}

// Misses fills q with numbers that are not keys.
func (d *Dataset[W]) Misses(rng *rand.Rand, q []W) {
	for i := 0; i < len(q); {
		lo, hi := d.Gap(rng.IntN(len(d.Keys)))
		if lo < hi { // hi itself is a key
			q[i] = lo + W(rng.Uint64N(uint64(hi-lo)))
			i++
		}
	}
}

// IsRank reports whether exactly r keys are below q.
func (d *Dataset[W]) IsRank(q W, r int) bool {
	return r >= 0 && r <= len(d.Keys) &&
		(r == 0 || d.Keys[r-1] < q) && (r == len(d.Keys) || q <= d.Keys[r])
}

// Has reports whether q is a key. It starts where q would be in a uniform set
// and widens the window until q is inside: the checks call it millions of
// times.
func (d *Dataset[W]) Has(q W) bool {
	n := len(d.Keys)
	guess := int(float64(q) / float64(^W(0)) * float64(n))
	lo, hi := clamp(guess-64, n), clamp(guess+64, n)
	for step := 64; lo > 0 && d.Keys[lo] > q; step *= 2 {
		lo = clamp(lo-step, n)
	}
	for step := 64; hi < n && d.Keys[hi] <= q; step *= 2 {
		hi = clamp(hi+step, n)
	}
	_, ok := slices.BinarySearch(d.Keys[lo:hi], q)
	return ok
}

func clamp(i, n int) int { return max(0, min(i, n)) }

// DrawPieces fills q on all cores; stream, below 2^20, distinguishes rounds.
func DrawPieces[W Word](seed, stream uint64, q []W, fill Filler[W]) {
	contest.ForPieces(len(q), func(p, lo, hi int) {
		fill(NewRand(seed, streamPieces+stream<<20+uint64(p)), q[lo:hi])
	})
}

// Filler makes queries.
type Filler[W Word] func(*rand.Rand, []W)
