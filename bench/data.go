package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"unsafe"
)

// word is the type of a key and of a value: the experiments use pairs of one
// width.
type word interface{ uint32 | uint64 }

// dataset is n distinct uniform random keys in order, and a value for each
// that follows from the key, so that every answer can be checked.
type dataset[W word] struct {
	keys, vals []W
}

// Streams distinguish the random numbers drawn from one seed.
const (
	streamShuffle = iota
	streamQueries // and above: one per round

	streamPieces = 1 << 40 // and above: one per piece of a round, see drawPieces
	streamKeys   = 1 << 41 // and above: one per piece of the keys, see sortedKeys
	streamLow    = 1 << 42 // the same
	streamTexts  = 1 << 43 // the same, for strings; for URLs one per host
)

func newRand(seed, stream uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, stream)) }

// newDataset makes n entries. A 32-bit domain must stay at least half empty,
// so that there are misses to ask for.
func newDataset[W word](s *session, n int) (*dataset[W], error) {
	if bits := bitsOf[W](); bits == 32 && n > 1<<31 {
		return nil, fmt.Errorf("n %s: at most 2G keys of 32 bits", sizeText(n))
	}
	need := int64(n) * int64(2*bitsOf[W]()/8)
	if free := freeMemory(); need > free {
		return nil, fmt.Errorf("n %s: the pairs alone need %s, %s of memory are free: use a smaller --n",
			sizeText(n), gib(need), gib(free))
	}
	s.say("making %s random keys of %d bits ...", sizeText(n), bitsOf[W]())
	d := &dataset[W]{keys: sortedKeys[W](n, s.seed), vals: make([]W, n)}
	spread(allCores(), n, func(lo, hi int) int {
		for i, k := range d.keys[lo:hi] {
			d.vals[lo+i] = valueOf(k)
		}
		return 0
	})
	return d, nil
}

func bitsOf[W word]() int { var w W; return int(unsafe.Sizeof(w)) * 8 }

// sortedKeys draws n uniform random keys already in order: the sums of n+1
// exponential gaps, divided by their total, are distributed as n sorted
// uniform numbers. Equal neighbors are moved apart, because keys are distinct.
// All cores draw, each piece from a stream of its own: once to know where the
// pieces begin, and once more for the keys.
func sortedKeys[W word](n int, seed uint64) []W {
	keys := make([]W, n)
	starts := make([]float64, n/drawPiece+2)
	forPieces(n+1, func(p, lo, hi int) {
		rng, sum := newRand(seed, streamKeys+uint64(p)), 0.0
		for range hi - lo {
			sum += rng.ExpFloat64()
		}
		starts[p+1] = sum
	})
	for p := 1; p < len(starts); p++ {
		starts[p] += starts[p-1]
	}
	total := starts[len(starts)-1]
	forPieces(n, func(p, lo, hi int) {
		rng, low := newRand(seed, streamKeys+uint64(p)), newRand(seed, streamLow+uint64(p))
		sum := starts[p]
		for i := lo; i < hi; i++ {
			sum += rng.ExpFloat64()
			keys[i] = scale[W](sum/total, low)
			moveApart(keys, lo, i)
		}
	})
	for seam := drawPiece; seam < n; seam += drawPiece {
		for i := seam; i < n && keys[i] <= keys[i-1]; i++ {
			keys[i] = keys[i-1] + 1
		}
	}
	return keys
}

// moveApart makes key i differ from the one before, unless it is the first of
// its piece, and leaves room below the domain's end for the keys to come.
func moveApart[W word](keys []W, first, i int) {
	if i > first && keys[i] <= keys[i-1] {
		keys[i] = keys[i-1] + 1
	}
	keys[i] = min(keys[i], ^W(0)-W(len(keys)-1-i))
}

// scale maps [0, 1] linearly to the domain. A float64 has 53 bits: the lower
// bits of a 64-bit key are drawn at random.
func scale[W word](x float64, low *rand.Rand) W {
	const bits = 53
	u := min(uint64(x*(1<<bits)), 1<<bits-1)
	if bitsOf[W]() == 32 {
		return W(u >> (bits - 32))
	}
	return W(u<<(64-bits) | low.Uint64()>>bits)
}

// odd is odd, so that valueOf returns different values for different keys.
var odd uint64 = 0x9e3779b97f4a7c15

func valueOf[W word](k W) W { return k*W(odd) ^ W(odd>>32) }

// shuffled returns the pairs in random order.
func (d *dataset[W]) shuffled(seed uint64) *dataset[W] {
	out := &dataset[W]{keys: slices.Clone(d.keys), vals: make([]W, len(d.vals))}
	newRand(seed, streamShuffle).Shuffle(len(out.keys), func(i, j int) {
		out.keys[i], out.keys[j] = out.keys[j], out.keys[i]
	})
	for i, k := range out.keys {
		out.vals[i] = valueOf(k)
	}
	return out
}

// hits fills q with keys of the set, in random order.
func (d *dataset[W]) hits(rng *rand.Rand, q []W) {
	for i := range q {
		q[i] = d.keys[rng.IntN(len(d.keys))]
	}
}

// between fills q with numbers of random rank: from just above one key up to
// and including the next, or beyond the last.
func (d *dataset[W]) between(rng *rand.Rand, q []W) {
	for i := range q {
		lo, hi := d.gap(rng.IntN(len(d.keys) + 1))
		q[i] = lo + W(rng.Uint64N(uint64(hi-lo)+1))
	}
}

// gap returns the first and the last number of rank r. The gap above a key
// that is the domain's last has no number: the gap below it is returned
// instead.
func (d *dataset[W]) gap(r int) (lo, hi W) {
	top := ^W(0)
	if r == len(d.keys) {
		if d.keys[r-1] != top {
			return d.keys[r-1] + 1, top
		}
		r--
	}
	if r > 0 {
		lo = d.keys[r-1] + 1
	}
	return lo, d.keys[r]
}

// misses fills q with numbers that are not keys.
func (d *dataset[W]) misses(rng *rand.Rand, q []W) {
	for i := 0; i < len(q); {
		lo, hi := d.gap(rng.IntN(len(d.keys)))
		if lo < hi { // hi itself is a key
			q[i] = lo + W(rng.Uint64N(uint64(hi-lo)))
			i++
		}
	}
}

// isRank reports whether exactly r keys are below q.
func (d *dataset[W]) isRank(q W, r int) bool {
	return r >= 0 && r <= len(d.keys) &&
		(r == 0 || d.keys[r-1] < q) && (r == len(d.keys) || q <= d.keys[r])
}

// has reports whether q is a key. It starts where q would be in a uniform set
// and widens the window until q is inside: the checks call it millions of
// times.
func (d *dataset[W]) has(q W) bool {
	n := len(d.keys)
	guess := int(float64(q) / float64(^W(0)) * float64(n))
	lo, hi := clamp(guess-64, n), clamp(guess+64, n)
	for step := 64; lo > 0 && d.keys[lo] > q; step *= 2 {
		lo = clamp(lo-step, n)
	}
	for step := 64; hi < n && d.keys[hi] <= q; step *= 2 {
		hi = clamp(hi+step, n)
	}
	_, ok := slices.BinarySearch(d.keys[lo:hi], q)
	return ok
}

func clamp(i, n int) int { return max(0, min(i, n)) }
