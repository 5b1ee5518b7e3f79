package main

import (
	"math"
	"math/rand/v2"
	"slices"

	tidwall "github.com/tidwall/btree"
)

// The core workloads of the Yahoo! Cloud Serving Benchmark (Cooper et al., SoCC
// 2010), for keys and values of 8 bytes.

// mixOp is what one operation of a workload does.
type mixOp uint8

const (
	mixRead   mixOp = iota
	mixUpdate       // sets the value of a key that is there
	mixInsert       // sets a new key
	mixScan         // reads some entries from a key on
	mixModify       // reads a value and sets it to one that follows from it
)

// workload is shares of operations, in percent.
type workload struct {
	name   string
	shares [5]int // by mixOp
	latest bool   // reads prefer what was inserted last
}

var workloads = []workload{
	{name: "A", shares: [5]int{mixRead: 50, mixUpdate: 50}},
	{name: "B", shares: [5]int{mixRead: 95, mixUpdate: 5}},
	{name: "C", shares: [5]int{mixRead: 100}},
	{name: "D", shares: [5]int{mixRead: 95, mixInsert: 5}, latest: true},
	{name: "E", shares: [5]int{mixScan: 95, mixInsert: 5}},
	{name: "F", shares: [5]int{mixRead: 50, mixModify: 50}},
}

// has reports whether a workload has operations of a kind.
func (w *workload) has(op mixOp) bool { return w.shares[op] > 0 }

// maxScan is the most entries of a scan; their number is uniform.
const maxScan = 100

// modified returns what a read-modify-write makes of a value.
func modified(val uint64) uint64 { return val + 1 }

// mix is the operations of one round, and their expected results.
type mix struct {
	ops  []mixOp
	keys []uint64
	vals []uint64 // to be set; for scans the number of entries
	want []uint64 // value read, or sum of keys and values of a scan; else 0
}

func newMix(n int) *mix {
	return &mix{make([]mixOp, n), make([]uint64, n), make([]uint64, n), make([]uint64, n)}
}

// mixer draws the rounds of a workload, and knows what a map holds that has done
// all rounds so far.
type mixer struct {
	work  workload
	d     *dataset[uint64]
	rank  func(rng *rand.Rand) int // of a key, the most popular first
	set   map[uint64]uint64        // values that are no longer the first ones
	added tidwall.Map[uint64, uint64]
	late  []uint64 // keys inserted, the oldest first
}

func newMixer(w workload, d *dataset[uint64], zipf bool) *mixer {
	m := &mixer{work: w, d: d, set: map[uint64]uint64{}}
	n := len(d.keys)
	m.rank = func(rng *rand.Rand) int { return rng.IntN(n) }
	if zipf {
		z := newZipf(n, 0.99)
		m.rank = func(rng *rand.Rand) int { return z.draw(rng) }
	}
	return m
}

// draw makes the operations of a round.
func (m *mixer) draw(rng *rand.Rand, x *mix) {
	for i := range x.ops {
		op := m.work.pick(rng)
		x.ops[i], x.keys[i] = op, m.key(rng)
		switch op {
		case mixUpdate:
			x.vals[i] = rng.Uint64() | 1
		case mixInsert:
			x.keys[i] = rng.Uint64()
			x.vals[i] = valueOf(x.keys[i])
		case mixScan:
			x.vals[i] = 1 + rng.Uint64N(maxScan)
		}
		x.want[i] = m.do(op, x.keys[i], x.vals[i])
	}
}

func (w *workload) pick(rng *rand.Rand) mixOp {
	p := rng.IntN(100)
	for op, share := range w.shares {
		if p -= share; p < 0 {
			return mixOp(op)
		}
	}
	return mixRead
}

// key draws the key of an operation on one that is there. Popular keys lie
// anywhere in key order.
func (m *mixer) key(rng *rand.Rand) uint64 {
	r := m.rank(rng)
	if m.work.latest {
		if r < len(m.late) {
			return m.late[len(m.late)-1-r]
		}
		r -= len(m.late)
	}
	h := uint64(r)*odd + odd>>7
	h ^= h >> 32
	return m.d.keys[h*odd%uint64(len(m.d.keys))]
}

// do does one operation on the model, and returns what it finds.
func (m *mixer) do(op mixOp, key, val uint64) uint64 {
	switch op {
	case mixRead:
		return m.value(key)
	case mixUpdate:
		m.set[key] = val
	case mixModify:
		m.set[key] = modified(m.value(key))
	case mixInsert:
		m.added.Set(key, val)
		m.late = append(m.late, key)
	case mixScan:
		return m.scan(key, int(val))
	}
	return 0
}

func (m *mixer) value(key uint64) uint64 {
	if v, ok := m.set[key]; ok {
		return v
	}
	return valueOf(key)
}

// scan merges the first keys with those added.
func (m *mixer) scan(from uint64, n int) (sum uint64) {
	at, _ := slices.BinarySearch(m.d.keys, from)
	it := m.added.Iter()
	more := it.Seek(from)
	for ; n > 0 && (more || at < len(m.d.keys)); n-- {
		k := uint64(0)
		if more && (at == len(m.d.keys) || it.Key() < m.d.keys[at]) {
			k, more = it.Key(), it.Next()
		} else {
			k = m.d.keys[at]
			at++
		}
		sum += k + m.value(k)
	}
	return sum
}

// zipf draws ranks below n with probabilities that fall as 1/(rank+1)^s, s below
// 1, by the method of Gray et al. (SIGMOD 1994), as YCSB does.
type zipf struct {
	n, s, alpha, eta, zeta, two float64
}

func newZipf(n int, s float64) *zipf {
	z := &zipf{n: float64(n), s: s, alpha: 1 / (1 - s), zeta: zetaTo(n, s), two: zetaTo(min(n, 2), s)}
	z.eta = (1 - math.Pow(2/z.n, 1-s)) / (1 - z.two/z.zeta)
	return z
}

func (z *zipf) draw(rng *rand.Rand) int {
	u := rng.Float64()
	switch uz := u * z.zeta; {
	case uz < 1 || z.n < 3:
		return 0
	case uz < z.two:
		return 1
	}
	return min(int(z.n*math.Pow(z.eta*u-z.eta+1, z.alpha)), int(z.n)-1)
}

// zetaTo returns the sum of 1/i^s for i from 1 to n. Behind the first million the
// sum is as good as the integral.
func zetaTo(n int, s float64) (sum float64) {
	const exact = mega
	for i := 1; i <= min(n, exact); i++ {
		sum += math.Pow(float64(i), -s)
	}
	if n > exact {
		sum += (math.Pow(float64(n)+0.5, 1-s) - math.Pow(exact+0.5, 1-s)) / (1 - s)
	}
	return sum
}
