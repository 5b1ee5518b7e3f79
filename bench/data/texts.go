package data

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"unsafe"

	"github.com/pando-index/pando/bench/contest"
)

// Texts is a set of distinct strings in order. The value of string i is
// ValueOf(i), so that every answer can be checked. The bytes lie one after the
// other in key order, which is the best case for peers that keep strings where
// they are.
type Texts struct {
	Label string
	Keys  []string
	Vals  []uint64
	Mean  float64 // bytes per key
}

// TextKind is one kind of keys.
type TextKind struct {
	Label string
	Bytes float64 // approximate bytes per key: to know what fits before it is made
	Keys  func(n int, seed uint64) []string
}

// TextKinds are the kinds of the issue: long common prefixes, none at all, and
// few values per byte.
var TextKinds = []TextKind{
	{"URLs", 60, URLs},
	{"UUIDs", UUIDBytes, UUIDs},
	{"phones", PhoneBytes, Phones},
}

// NewTexts makes n strings of a kind.
func NewTexts(s *contest.Session, kind TextKind, n int) *Texts {
	s.Say("making %s %s ...", contest.SizeText(n), kind.Label)
	t := &Texts{Label: kind.Label, Keys: kind.Keys(n, s.Seed)}
	t.Vals = make([]uint64, len(t.Keys))
	total := 0
	for i, k := range t.Keys {
		t.Vals[i] = ValueOf(uint64(i))
		total += len(k)
	}
	t.Mean = float64(total) / float64(max(1, len(t.Keys)))
	return t
}

// FixedTexts makes n strings of one size, each with put, which may draw from
// rng: piece by piece on all cores, each piece from a stream of its own.
func FixedTexts(n, size int, seed uint64, put func(dst []byte, i int, rng *rand.Rand)) []string {
	keys := make([]string, n)
	contest.ForPieces(n, func(p, lo, hi int) {
		rng, block := NewRand(seed, StreamTexts+uint64(p)), make([]byte, (hi-lo)*size)
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

// UUIDBytes is the length of a UUID.
const UUIDBytes = 36

// UUIDs returns random UUIDs, version 4, as text. Their upper 64 random bits
// are drawn in order, the lower 58 in any order.
func UUIDs(n int, seed uint64) []string {
	upper := SortedKeys[uint64](n, seed)
	return FixedTexts(n, UUIDBytes, seed, func(dst []byte, i int, rng *rand.Rand) {
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

// Phone numbers: their length, and how many there are.
const (
	PhoneBytes = 15
	nations    = 25
	allPhones  = nations * 900 * 900 * 9000
)

// Phones returns telephone numbers as in TPC-H: the number of a nation plus
// 10, then three random groups from 100, 100 and 1000 to 999, 999 and 9999.
// All are equally likely, and as they are of one length and all digits, their
// order is that of the numbers.
func Phones(n int, seed uint64) []string {
	numbers := Below(SortedKeys[uint64](n, seed), allPhones)
	return FixedTexts(n, PhoneBytes, seed, func(dst []byte, i int, _ *rand.Rand) { putPhone(dst, numbers[i]) })
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

// Below scales sorted 64-bit numbers down to a range, in place, and moves
// equal ones apart. There must be far fewer of them than numbers in the range.
func Below(sorted []uint64, end uint64) []uint64 {
	for i, k := range sorted {
		sorted[i], _ = bits.Mul64(k, end)
		if i > 0 {
			sorted[i] = max(sorted[i], sorted[i-1]+1)
		}
		sorted[i] = min(sorted[i], end-uint64(len(sorted)-i))
	}
	return sorted
}

// TextQueries are the queries of a round: copies of keys, so that no system
// finds a string at the very address that it keeps, and which keys they are.
type TextQueries struct {
	T      *Texts
	At     []uint32
	Q      []string
	blocks [][]byte // the copies, one block per piece, reused each round
}

// NewTextQueries returns room for n queries.
func NewTextQueries(t *Texts, n int) *TextQueries {
	return &TextQueries{T: t, At: make([]uint32, n), Q: make([]string, n), blocks: make([][]byte, (n+contest.DrawPiece-1)/contest.DrawPiece)}
}

// Draw makes the queries of a round, random hits.
func (x *TextQueries) Draw(seed uint64, round int) {
	contest.ForPieces(len(x.Q), func(p, lo, hi int) {
		rng := NewRand(seed, streamPieces+uint64(round+1)<<20+uint64(p))
		block := x.blocks[p][:0]
		if block == nil {
			block = make([]byte, 0, int(1.1*x.T.Mean*float64(hi-lo))+contest.Kilo)
		}
		for i := lo; i < hi; i++ {
			x.At[i] = uint32(rng.IntN(len(x.T.Keys)))
			start := len(block)
			// A full block is left to the strings in it, and append begins a
			// new one.
			block = append(block, x.T.Keys[x.At[i]]...)
			x.Q[i] = asString(block[start:])
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

// TreeTextKinds are the keys of strings-tree.
var TreeTextKinds = []TextKind{
	{"URLs", 60, URLs},
	{"words", 10, spoken},
	{"UUIDs", UUIDBytes, UUIDs},
	{"8 bytes", 8, func(n int, seed uint64) []string { return hashes(n, 8, seed) }},
	{"32 bytes", 32, func(n int, seed uint64) []string { return hashes(n, 32, seed) }},
}

// hashes returns random keys of a size: all bytes for 8, hexadecimal digits for 32.
func hashes(n, size int, seed uint64) []string {
	first := SortedKeys[uint64](n, seed)
	return FixedTexts(n, size, seed, func(dst []byte, i int, rng *rand.Rand) {
		var raw [16]byte
		binary.BigEndian.PutUint64(raw[:], first[i])
		binary.BigEndian.PutUint64(raw[8:], rng.Uint64())
		if size == 8 {
			copy(dst, raw[:])
			return
		}
		hex.Encode(dst, raw[:])
	})
}

// spoken returns what looks like words: syllables, more than it takes to tell them
// apart.
func spoken(n int, seed uint64) []string {
	const vowels, consonants = "aeiou", "bcdfghklmnprstvz"
	numbers := Below(SortedKeys[uint64](n, seed), 80*80*80*80*80) // of five syllables
	return FixedTexts(n, 10, seed, func(dst []byte, i int, _ *rand.Rand) {
		k := numbers[i]
		for at := 8; at >= 0; at -= 2 {
			dst[at], dst[at+1] = consonants[k%80/5], vowels[k%5]
			k /= 80
		}
	})
}

// What a string takes beside its bytes, and its value, in bytes.
const (
	StringHeader = 16
	TextValue    = 8
)
