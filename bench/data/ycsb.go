package data

import (
	"math/rand/v2"
	"slices"

	tidwall "github.com/tidwall/btree"
)

// The core workloads of the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC
// 2010), for keys and values of 8 bytes.

// MixOp is what one operation of a workload does.
type MixOp uint8

// The operations of workloads.
const (
	MixRead   MixOp = iota
	mixUpdate       // sets the value of a key that is there
	mixInsert       // sets a new key
	MixScan         // reads some entries from a key on
	MixModify       // reads a value and sets it to one that follows from it
)

// Workload is shares of operations, in percent.
type Workload struct {
	Name   string
	shares [5]int // by MixOp
	latest bool   // reads prefer what was inserted last
}

// Workloads are A to F.
var Workloads = []Workload{
	{Name: "A", shares: [5]int{MixRead: 50, mixUpdate: 50}},
	{Name: "B", shares: [5]int{MixRead: 95, mixUpdate: 5}},
	{Name: "C", shares: [5]int{MixRead: 100}},
	{Name: "D", shares: [5]int{MixRead: 95, mixInsert: 5}, latest: true},
	{Name: "E", shares: [5]int{MixScan: 95, mixInsert: 5}},
	{Name: "F", shares: [5]int{MixRead: 50, MixModify: 50}},
}

// Has reports whether a workload has operations of a kind.
func (w *Workload) Has(op MixOp) bool { return w.shares[op] > 0 }

// maxScan is the most entries of a scan; their number is uniform.
const maxScan = 100

// Modified returns what a read-modify-write makes of a value.
func Modified(val uint64) uint64 { return val + 1 }

// Mix is the operations of one round, and their expected results.
type Mix struct {
	Ops  []MixOp
	Keys []uint64
	Vals []uint64 // to be set; for scans the number of entries
	Want []uint64 // value read, or sum of keys and values of a scan; else 0
}

// NewMix returns room for n operations.
func NewMix(n int) *Mix {
	return &Mix{make([]MixOp, n), make([]uint64, n), make([]uint64, n), make([]uint64, n)}
}

// Mixer draws the rounds of a workload, and knows what a map holds that has done
// all rounds so far.
type Mixer struct {
	work  Workload
	d     *Dataset[uint64]
	rank  func(rng *rand.Rand) int // of a key, the most popular first
	set   map[uint64]uint64        // values that are no longer the first ones
	added tidwall.Map[uint64, uint64]
	Late  []uint64 // keys inserted, the oldest first
}

// NewMixer returns what draws the rounds of a workload over a dataset.
func NewMixer(w Workload, d *Dataset[uint64], zipf bool) *Mixer {
	m := &Mixer{work: w, d: d, set: map[uint64]uint64{}}
	n := len(d.Keys)
	m.rank = func(rng *rand.Rand) int { return rng.IntN(n) }
	if zipf {
		z := NewZipf(n, 0.99)
		m.rank = func(rng *rand.Rand) int { return z.Draw(rng) }
	}
	return m
}

// Draw makes the operations of a round.
func (m *Mixer) Draw(rng *rand.Rand, x *Mix) {
	for i := range x.Ops {
		op := m.work.pick(rng)
		x.Ops[i], x.Keys[i] = op, m.key(rng)
		switch op {
		case mixUpdate:
			x.Vals[i] = rng.Uint64() | 1
		case mixInsert:
			x.Keys[i] = rng.Uint64()
			x.Vals[i] = ValueOf(x.Keys[i])
		case MixScan:
			x.Vals[i] = 1 + rng.Uint64N(maxScan)
		}
		x.Want[i] = m.do(op, x.Keys[i], x.Vals[i])
	}
}

func (w *Workload) pick(rng *rand.Rand) MixOp {
	p := rng.IntN(100)
	for op, share := range w.shares {
		if p -= share; p < 0 {
			return MixOp(op)
		}
	}
	return MixRead
}

// key draws the key of an operation on one that is there. Popular keys lie
// anywhere in key order.
func (m *Mixer) key(rng *rand.Rand) uint64 {
	r := m.rank(rng)
	if m.work.latest {
		if r < len(m.Late) {
			return m.Late[len(m.Late)-1-r]
		}
		r -= len(m.Late)
	}
	h := uint64(r)*Odd + Odd>>7
	h ^= h >> 32
	return m.d.Keys[h*Odd%uint64(len(m.d.Keys))]
}

// do does one operation on the model, and returns what it finds.
func (m *Mixer) do(op MixOp, key, val uint64) uint64 {
	switch op {
	case MixRead:
		return m.value(key)
	case mixUpdate:
		m.set[key] = val
	case MixModify:
		m.set[key] = Modified(m.value(key))
	case mixInsert:
		m.added.Set(key, val)
		m.Late = append(m.Late, key)
	case MixScan:
		return m.scan(key, int(val))
	}
	return 0
}

func (m *Mixer) value(key uint64) uint64 {
	if v, ok := m.set[key]; ok {
		return v
	}
	return ValueOf(key)
}

// Changed returns the keys that no longer have their first values, with those.
func (m *Mixer) Changed() (keys, vals []uint64) {
	for k := range m.set {
		keys, vals = append(keys, k), append(vals, ValueOf(k))
	}
	return keys, vals
}

// scan merges the first keys with those added.
func (m *Mixer) scan(from uint64, n int) (sum uint64) {
	at, _ := slices.BinarySearch(m.d.Keys, from)
	it := m.added.Iter()
	more := it.Seek(from)
	for ; n > 0 && (more || at < len(m.d.Keys)); n-- {
		k := uint64(0)
		if more && (at == len(m.d.Keys) || it.Key() < m.d.Keys[at]) {
			k, more = it.Key(), it.Next()
		} else {
			k = m.d.Keys[at]
			at++
		}
		sum += k + m.value(k)
	}
	return sum
}
