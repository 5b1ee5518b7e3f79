package fast

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/internal/words"
)

var keyEntropy = &contest.Experiment{
	Name:     "key-entropy",
	About:    "work beyond the least to find 16-byte keys, by the values that a byte has, and phone numbers",
	Figure:   "fig. 9 of the " + contest.Paper10,
	CaseName: "values a byte",
	Sizes:    []int{16 * contest.Mega},
	Queries:  contest.Mega,
	Extra:    []contest.ExtraColumn{{Name: colCompares, Format: three}, {Name: colWork, Format: three}, {Name: colWalked, Format: three}},
	Run:      runKeyEntropy,
}

// The columns of key-entropy: full keys compared per query, where 1 is the
// minimum; all comparisons relative to the minimum, if equal partial keys are
// resolved by bisection; and the same if they are resolved by walking from the
// first one on.
const (
	colCompares = "full keys compared"
	colWork     = "x work"
	colWalked   = "x work, walked"
)

func three(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }

// entropies are the numbers of values per byte in the paper.
var entropies = []int{1, 2, 4, 8, 10, 16, 32, 52, 64, 128}

const entropyBytes = 16

func runKeyEntropy(s *contest.Session) error {
	for _, n := range s.Sizes {
		// Strings, the same as numbers, and Pando's list.
		if !s.Room("keys", n, data.StringHeader+4*entropyBytes+16, "use a smaller --n") {
			continue
		}
		for _, values := range entropies {
			s.Say("making %s keys of %d values a byte ...", contest.SizeText(n), values)
			if err := entropyRows(s, strconv.Itoa(values), data.DigitTexts(n, entropyBytes, values, s.Seed)); err != nil {
				return err
			}
		}
		s.Say("making %s phones ...", contest.SizeText(n))
		if err := entropyRows(s, "TPC-H phones", data.Phones(n, s.Seed)); err != nil {
			return err
		}
	}
	return nil
}

// entropyRows counts with Pando's lists, with granules of one bit and of four,
// and with the paper's tree, with both ways to make partial keys.
func entropyRows(s *contest.Session, label string, keys []string) error {
	at := make([]int, min(s.Queries, 4*len(keys)))
	rng := data.RoundRand(s, 0)
	for i := range at {
		at[i] = rng.IntN(len(keys))
	}
	for i, granule := range []int{0, 4} {
		r, err := pandoWork(keys, at, granule)
		if err != nil {
			return err
		}
		r.Case, r.Reference = label, i == 0
		s.Add(r)
	}
	m := newPartialModel(keys)
	for _, scheme := range []partialScheme{nonContiguous, contiguous} {
		r := m.row(scheme, at)
		r.Case = label
		s.Add(r)
	}
	s.EndSet()
	return nil
}

// leastWork returns the number of comparisons of a search that meets no equal
// partial keys: one per binary level, and the full key.
func leastWork(n int) float64 { return math.Ceil(math.Log2(float64(n))) + 1 }

// pandoWork counts what Pando's list compares. Granule 0 means its default.
func pandoWork(keys []string, at []int, granule int) (*contest.Row, error) {
	t, err := words.Build(keys, nil, words.Config{Pages: inside.HugePages, Workers: contest.AllCores(), Granule: granule})
	if err != nil {
		return nil, err
	}
	defer t.Release()
	queries := make([]string, len(at))
	for i, p := range at {
		queries[i] = keys[p]
	}
	r := contest.NewRow(contest.Pando, "", len(keys))
	r.Ops, r.BytesPerEntry = len(at), float64(t.Stats().TotalBytes)/float64(len(keys))
	if granule > 0 {
		r.System = fmt.Sprintf("%s, G = %d", contest.Pando, granule)
	}
	setWork(r, float64(t.Work(queries))/float64(len(at)), 0)
	return r, nil
}

// setWork fills the columns from the number of full keys compared per query,
// and the number of further ones that a walk passes; 0 if nothing walks.
func setWork(r *contest.Row, compares, walked float64) {
	least := leastWork(r.N)
	r.Set(colCompares, compares)
	r.Set(colWork, (least-1+compares)/least)
	if walked > 0 {
		r.Set(colWalked, (least-1+walked)/least)
	}
}

// wide is a key of up to 16 bytes as a number, with zeros after its end.
type wide struct{ hi, lo uint64 }

func (a wide) less(b wide) bool { return a.hi < b.hi || a.hi == b.hi && a.lo < b.lo }

func (a wide) and(b wide) wide { return wide{a.hi & b.hi, a.lo & b.lo} }

func (a wide) xor(b wide) wide { return wide{a.hi ^ b.hi, a.lo ^ b.lo} }

func wideOf(key string) wide {
	var b [16]byte
	copy(b[:], key)
	return wide{binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:])}
}

// partialModel is the tree of the paper, as far as counting requires: pages of
// 4 KiB, that is 1024 partial keys of 32 bits, and in the first page as many
// bits as necessary. Above the keys, entry j of a tier is the greatest key of
// page j of the tier below.
type partialModel struct {
	keys  []wide
	tiers []partialTier // the keys' tier first
}

const (
	partialBits = 32
	modelPage   = 1024
	granuleBits = 4 // the paper's G
)

// partialTier is one row of pages.
type partialTier struct {
	stride  int // keys per entry
	entries int
	bits    int
}

// partialScheme selects, from the sorted keys under a page, the bits that
// partial keys are made of. Comparing keys by these bits alone is the same as
// comparing partial keys.
type partialScheme struct {
	name string
	mask func(under []wide, size int) wide
}

var (
	nonContiguous = partialScheme{"pages of 4 KiB, non-contiguous common prefix", differing}
	contiguous    = partialScheme{"pages of 4 KiB, contiguous common prefix", behindPrefix}
)

// differing takes the first granules in which any two keys differ.
func differing(under []wide, size int) (mask wide) {
	var differ wide
	for _, k := range under {
		d := k.xor(under[0])
		differ.hi, differ.lo = differ.hi|d.hi, differ.lo|d.lo
	}
	return firstGranules(size, func(at int) bool { return differ.granule(at) != 0 })
}

// behindPrefix takes the granules after the prefix that all keys share.
func behindPrefix(under []wide, size int) (mask wide) {
	prefix := under[0].xor(under[len(under)-1])
	start := bits.LeadingZeros64(prefix.hi)
	if prefix.hi == 0 {
		start += bits.LeadingZeros64(prefix.lo)
	}
	return firstGranules(size, func(at int) bool { return at >= start/granuleBits*granuleBits })
}

// granule returns the bits of a granule; the first is granule 0.
func (a wide) granule(at int) uint64 {
	if at < 64 {
		return a.hi << at >> (64 - granuleBits)
	}
	return a.lo << (at - 64) >> (64 - granuleBits)
}

// firstGranules sets the first granules that are taken, up to size bits.
func firstGranules(size int, take func(at int) bool) (mask wide) {
	const all = uint64(1)<<granuleBits - 1
	for at := 0; at < 128 && size > 0; at += granuleBits {
		if !take(at) {
			continue
		}
		if at < 64 {
			mask.hi |= all << (64 - granuleBits - at)
		} else {
			mask.lo |= all << (128 - granuleBits - at)
		}
		size -= granuleBits
	}
	return mask
}

func newPartialModel(keys []string) *partialModel {
	m := &partialModel{keys: make([]wide, len(keys))}
	for i, k := range keys {
		m.keys[i] = wideOf(k)
	}
	for stride := 1; ; stride *= modelPage {
		entries := (len(keys) + stride - 1) / stride
		m.tiers = append(m.tiers, partialTier{stride, entries, partialBits})
		if entries <= modelPage {
			return m
		}
	}
}

// entry returns the greatest key under entry j of a tier.
func (m *partialModel) entry(t partialTier, j int) wide {
	return m.keys[min((j+1)*t.stride, len(m.keys))-1]
}

// masks returns the mask of each page of a tier.
func (m *partialModel) masks(t partialTier, scheme partialScheme) []wide {
	under := modelPage * t.stride
	out := make([]wide, (t.entries+modelPage-1)/modelPage)
	for p := range out {
		out[p] = scheme.mask(m.keys[p*under:min((p+1)*under, len(m.keys))], t.bits)
	}
	return out
}

// maxFalse is the fraction of false positives that the first page may have.
const maxFalse = 0.0001

// widen doubles the bits of the first page until it distinguishes its entries.
func (m *partialModel) widen(scheme partialScheme) {
	top := &m.tiers[len(m.tiers)-1]
	for top.bits = partialBits; top.bits < 128; top.bits *= 2 {
		mask, equal := m.masks(*top, scheme)[0], 0
		for j := 1; j < top.entries; j++ {
			a, b := m.entry(*top, j-1), m.entry(*top, j)
			if a != b && a.and(mask) == b.and(mask) {
				equal++
			}
		}
		if float64(equal) < maxFalse*float64(top.entries) {
			return
		}
	}
}

// row counts the work of finding the keys at the given ranks.
func (m *partialModel) row(scheme partialScheme, at []int) *contest.Row {
	m.widen(scheme)
	masks := make([][]wide, len(m.tiers))
	for i, t := range m.tiers {
		masks[i] = m.masks(t, scheme)
	}
	compared, walked := 0, 0
	for _, p := range at {
		c, w := m.find(m.keys[p], masks)
		compared, walked = compared+c, walked+w
	}
	r := contest.NewRow(scheme.name, "", len(m.keys))
	r.Ops = len(at)
	setWork(r, float64(compared)/float64(len(at)), float64(walked)/float64(len(at)))
	return r
}

// find counts the full keys that are compared on the way to the first key
// equal to q: in each page the first entry with q's partial key, if there is
// one, and then those needed to choose among the rest by bisection. walked is
// how many are needed if the search continues with the first entry unchecked,
// and at the end looks at keys one by one until q is found.
func (m *partialModel) find(q wide, masks [][]wide) (compared, walked int) {
	target := m.lower(m.tiers[0], 0, len(m.keys), wide{^uint64(0), ^uint64(0)}, q)
	for i := len(m.tiers) - 1; i >= 0; i-- {
		t := m.tiers[i]
		right := target / t.stride
		page := right / modelPage
		mask, end := masks[i][page], min((page+1)*modelPage, t.entries)
		first := m.lower(t, page*modelPage, end, mask, q)
		behind := m.above(t, first, end, mask, q)
		if behind > first {
			compared++
		}
		if right > first {
			compared += bits.Len(uint(behind - first - 1))
		}
		if walked == 0 && (first < right || i == 0) {
			// If it went astray, it arrives at the last key of that subtree.
			walked = 1 + target - min((first+1)*t.stride-1, target)
		}
	}
	return compared, walked
}

// lower returns the first of a page's entries that is not below q, by the
// mask's bits.
func (m *partialModel) lower(t partialTier, lo, hi int, mask, q wide) int {
	q = q.and(mask)
	return halve(lo, hi, func(j int) bool { return m.entry(t, j).and(mask).less(q) })
}

// above returns the first entry that is above q.
func (m *partialModel) above(t partialTier, lo, hi int, mask, q wide) int {
	q = q.and(mask)
	return halve(lo, hi, func(j int) bool { return !q.less(m.entry(t, j).and(mask)) })
}

// halve returns the first of [lo, hi) for which before is false, or hi.
func halve(lo, hi int, before func(int) bool) int {
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if before(mid) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
