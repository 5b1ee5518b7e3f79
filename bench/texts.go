package main

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"unsafe"
)

// texts is a set of distinct strings in order. The value of string i is
// valueOf(i), so that every answer can be checked. The bytes lie one after the
// other in key order, which is the best case for peers that keep strings where
// they are.
type texts struct {
	label string
	keys  []string
	vals  []uint64
	mean  float64 // bytes per key
}

// textKind is one kind of keys.
type textKind struct {
	label string
	bytes float64 // approximate bytes per key: to know what fits before it is made
	keys  func(n int, seed uint64) []string
}

// textKinds are the kinds of the issue: long common prefixes, none at all, and
// few values per byte.
var textKinds = []textKind{
	{"URLs", 60, urls},
	{"UUIDs", uuidBytes, uuids},
	{"phones", phoneBytes, phones},
}

// newTexts makes n strings of a kind.
func newTexts(s *session, kind textKind, n int) *texts {
	s.say("making %s %s ...", sizeText(n), kind.label)
	t := &texts{label: kind.label, keys: kind.keys(n, s.seed)}
	t.vals = make([]uint64, len(t.keys))
	total := 0
	for i, k := range t.keys {
		t.vals[i] = valueOf(uint64(i))
		total += len(k)
	}
	t.mean = float64(total) / float64(max(1, len(t.keys)))
	return t
}

// fixedTexts makes n strings of one size, each with put, which may draw from
// rng: piece by piece on all cores, each piece from a stream of its own.
func fixedTexts(n, size int, seed uint64, put func(dst []byte, i int, rng *rand.Rand)) []string {
	keys := make([]string, n)
	forPieces(n, func(p, lo, hi int) {
		rng, block := newRand(seed, streamTexts+uint64(p)), make([]byte, (hi-lo)*size)
		for i := lo; i < hi; i++ {
			dst := block[(i-lo)*size:][:size:size]
			put(dst, i, rng)
			keys[i] = asString(dst)
		}
	})
	return keys
}

// asString returns b as a string without a copy: b must not change while the
// string is in use.
func asString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

const uuidBytes = 36

// uuids returns random UUIDs, version 4, as text. Their upper 64 random bits
// are drawn in order, the lower 58 in any order.
func uuids(n int, seed uint64) []string {
	upper := sortedKeys[uint64](n, seed)
	return fixedTexts(n, uuidBytes, seed, func(dst []byte, i int, rng *rand.Rand) {
		putUUID(dst, upper[i], rng.Uint64()>>6)
	})
}

// putUUID writes the 122 random bits of a UUID around its version and variant.
func putUUID(dst []byte, upper, lower uint64) {
	var raw [16]byte
	first := upper >> 4 // 60 bits: all before the variant
	binary.BigEndian.PutUint64(raw[:], first>>12<<16|4<<12|first&0xfff)
	binary.BigEndian.PutUint64(raw[8:], 0b10<<62|upper&0xf<<58|lower)
	for _, part := range [][3]int{{0, 0, 4}, {9, 4, 6}, {14, 6, 8}, {19, 8, 10}, {24, 10, 16}} {
		hex.Encode(dst[part[0]:], raw[part[1]:part[2]])
	}
	for _, at := range []int{8, 13, 18, 23} {
		dst[at] = '-'
	}
}

const (
	phoneBytes = 15
	nations    = 25
	allPhones  = nations * 900 * 900 * 9000
)

// phones returns telephone numbers as in TPC-H: the number of a nation plus
// 10, then three random groups from 100, 100 and 1000 to 999, 999 and 9999.
// All are equally likely, and as they are of one length and all digits, their
// order is that of the numbers.
func phones(n int, seed uint64) []string {
	numbers := below(sortedKeys[uint64](n, seed), allPhones)
	return fixedTexts(n, phoneBytes, seed, func(dst []byte, i int, _ *rand.Rand) { putPhone(dst, numbers[i]) })
}

func putPhone(dst []byte, number uint64) {
	local3, number := number%9000+1000, number/9000
	local2, number := number%900+100, number/900
	local1, nation := number%900+100, number/900+10
	dst = strconv.AppendUint(dst[:0], nation, 10)
	for _, group := range []uint64{local1, local2, local3} {
		dst = strconv.AppendUint(append(dst, '-'), group, 10)
	}
}

// below scales sorted 64-bit numbers down to a range, in place, and moves
// equal ones apart. There must be far fewer of them than numbers in the range.
func below(sorted []uint64, end uint64) []uint64 {
	for i, k := range sorted {
		sorted[i], _ = bits.Mul64(k, end)
		if i > 0 {
			sorted[i] = max(sorted[i], sorted[i-1]+1)
		}
		sorted[i] = min(sorted[i], end-uint64(len(sorted)-i))
	}
	return sorted
}

// textQueries are the queries of a round: copies of keys, so that no system
// finds a string at the very address that it keeps, and which keys they are.
type textQueries struct {
	t      *texts
	at     []uint32
	q      []string
	blocks [][]byte // the copies, one block per piece, reused each round
}

func newTextQueries(t *texts, n int) *textQueries {
	return &textQueries{t: t, at: make([]uint32, n), q: make([]string, n), blocks: make([][]byte, (n+drawPiece-1)/drawPiece)}
}

// draw makes the queries of a round, random hits.
func (x *textQueries) draw(seed uint64, round int) {
	forPieces(len(x.q), func(p, lo, hi int) {
		rng := newRand(seed, streamPieces+uint64(round+1)<<20+uint64(p))
		block := x.blocks[p][:0]
		if block == nil {
			block = make([]byte, 0, int(1.1*x.t.mean*float64(hi-lo))+kilo)
		}
		for i := lo; i < hi; i++ {
			x.at[i] = uint32(rng.IntN(len(x.t.keys)))
			start := len(block)
			// A full block is left to the strings in it, and append begins a
			// new one.
			block = append(block, x.t.keys[x.at[i]]...)
			x.q[i] = asString(block[start:])
		}
		x.blocks[p] = block
	})
}

// isSortedSet reports whether keys are strictly ascending.
func isSortedSet(keys []string) bool {
	return slices.IsSortedFunc(keys, func(a, b string) int {
		if a < b {
			return -1
		}
		return 1
	})
}
