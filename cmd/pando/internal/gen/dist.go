package gen

import (
	"math"
	"math/bits"
)

// dist is a distribution of numbers. make returns a function from the number
// of a row to a number below space (0: any).
type dist struct {
	about    string
	distinct bool // numbers are distinct, and grow with the row
	make     func(s Spec, space uint64) func(i uint64) uint64
}

// clusterKeys is the number of keys in a cluster.
const clusterKeys = 1000

var dists = map[string]dist{
	"uniform":   {"any number is as likely", false, uniform},
	"dense":     {"0, 1, 2, ... without gaps", true, dense},
	"gaps":      {"distinct keys, evenly spread, with random gaps", true, gaps},
	"clustered": {"runs of 1000 neighbours at random places", true, clustered},
	"normal":    {"a bell in the middle of all keys", false, normal},
	"lognormal": {"most keys small, a long tail (sigma 2, as in SOSD)", false, lognormal},
	"zipf":      {"a few keys very often; --skew says how few", false, zipf},
}

// Dists returns the names of the distributions.
func Dists() []string {
	return []string{"uniform", "dense", "gaps", "clustered", "normal", "lognormal", "zipf"}
}

// About describes a distribution in one line.
func About(name string) string { return dists[name].about }

// hash mixes a number with a seed (the finisher of SplitMix64).
func hash(seed, x uint64) uint64 {
	x += 0x9e3779b97f4a7c15 * (seed + 1)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// below maps a random number to one below n; 0 means any.
func below(h, n uint64) uint64 {
	if n == 0 {
		return h
	}
	hi, _ := bits.Mul64(h, n)
	return hi
}

// unit returns a random number in (0, 1).
func unit(h uint64) float64 { return (float64(h>>11) + 0.5) / (1 << 53) }

// width returns space as a float.
func width(space uint64) float64 {
	if space == 0 {
		return math.Ldexp(1, 64)
	}
	return float64(space)
}

// clamp converts a float to a number below space.
func clamp(x float64, space uint64) uint64 {
	switch {
	case !(x > 0):
		return 0
	case x >= width(space):
		return space - 1 // also if space is 0
	}
	return uint64(x)
}

func uniform(s Spec, space uint64) func(uint64) uint64 {
	return func(i uint64) uint64 { return below(hash(s.Seed, i), space) }
}

func dense(Spec, uint64) func(uint64) uint64 { return func(i uint64) uint64 { return i } }

func gaps(s Spec, space uint64) func(uint64) uint64 {
	gap := (space - 1) / uint64(s.Rows) // nearly 1<<64 if space is 0
	if gap == 0 {
		gap = 1
	}
	return func(i uint64) uint64 { return i*gap + below(hash(s.Seed, i), gap) }
}

func clustered(s Spec, space uint64) func(uint64) uint64 {
	clusters := (uint64(s.Rows) + clusterKeys - 1) / clusterKeys
	span := (space - 1) / clusters
	return func(i uint64) uint64 {
		c := i / clusterKeys
		start := c * span
		if span > clusterKeys {
			start += below(hash(s.Seed, c), span-clusterKeys)
		} else {
			return i
		}
		return start + i%clusterKeys
	}
}

// bell returns a number from the standard normal distribution (Box and
// Muller).
func bell(seed, i uint64) float64 {
	r := math.Sqrt(-2 * math.Log(unit(hash(seed, 2*i))))
	return r * math.Cos(2*math.Pi*unit(hash(seed, 2*i+1)))
}

func normal(s Spec, space uint64) func(uint64) uint64 {
	w := width(space)
	return func(i uint64) uint64 { return clamp(w/2+w/12*bell(s.Seed, i), space) }
}

// lognormal is scaled so that the greatest key is six deviations above the
// median.
func lognormal(s Spec, space uint64) func(uint64) uint64 {
	scale := width(space) / math.Exp(2*6)
	return func(i uint64) uint64 { return clamp(scale*math.Exp(2*bell(s.Seed, i)), space) }
}

// zipf draws ranks with a density that falls as 1/rank^skew, by the inverse of
// its distribution function, and scatters them over all keys.
func zipf(s Spec, space uint64) func(uint64) uint64 {
	n, power := float64(s.Rows), 1-s.Skew
	return func(i uint64) uint64 {
		u := unit(hash(s.Seed, i))
		rank := math.Pow(n, u)
		if math.Abs(power) > 1e-9 {
			rank = math.Pow((math.Pow(n, power)-1)*u+1, 1/power)
		}
		return below(hash(s.Seed+2, uint64(rank)), space)
	}
}

// permutation puts the numbers below n into a random order, one at a time: a
// Feistel network over the next power of four, iterated until the result is
// below n.
type permutation struct {
	n, seed uint64
	half    uint
}

func newPermutation(n, seed uint64) permutation {
	return permutation{n, seed, uint(bits.Len64(n-1)+1) / 2}
}

func (p permutation) at(i uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	for {
		lo, hi := i&mask, i>>p.half
		for round := range uint64(4) {
			lo, hi = hi^hash(p.seed+round, lo)&mask, lo
		}
		if i = hi<<p.half | lo; i < p.n {
			return i
		}
	}
}
