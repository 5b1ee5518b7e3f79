package simd

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

// packedPages builds pages directly from the definition, one bit at a time.
// Keys are sorted and fill whole pages; words has room for them.
func packedPages[C Code](keys []C, widths []uint64, words []byte) *Packed {
	table := make([]PackedEntry, len(widths), len(widths)+4)
	at := uint64(0)
	for p, w := range widths {
		page := keys[p*PackedPage:][:PackedPage]
		table[p] = PackedEntry{uint64(page[0]), at<<8 | w}
		put := func(j int, k C) {
			for b := range w {
				if uint64(k-page[0])>>b&1 > 0 {
					bit := 64*at + uint64(j)*w + b
					words[bit/8] |= 1 << (bit % 8)
				}
			}
		}
		for g := range PackedGroups {
			put(g, page[g*PackedGroup+PackedGroup-1])
		}
		for i, k := range page {
			put(PackedGroups+i, k)
		}
		at += ((PackedGroups+PackedPage)*w + 63) / 64
	}
	p := &Packed{
		Table: unsafe.Pointer(&table[0]), Words: unsafe.Pointer(&words[0]),
		Last: uint64(len(widths) - 1), End: at, Len: uint64(len(keys)), Distance: 5,
		Vals: unsafe.Pointer(&table[0]),
	}
	p.Ready()
	return p
}

// packedWidths returns the widths that pages of codes C may have.
func packedWidths[C Code]() []uint64 {
	var out []uint64
	for w := range uint64(33) {
		out = append(out, w)
	}
	if wide[C]() {
		out = append(out, 64)
	}
	return out
}

// pageOf returns a sorted page of keys from least on whose greatest difference
// takes exactly w bits.
func pageOf[C Code](least C, w uint64, rng *rand.Rand) []C {
	span := uint64(1)<<w - 1 // 1<<64 is 0
	keys := make([]C, PackedPage)
	for i := range keys {
		keys[i] = least + C(rng.Uint64()&span)
	}
	keys[0], keys[1] = least, least+C(span)
	slices.Sort(keys)
	return keys
}

// packedAsks returns every key and its neighbors.
func packedAsks[C Code](keys []C) []C {
	out := []C{0, 1, ^C(0), ^C(0) - 1}
	for _, k := range keys {
		out = append(out, k-1, k, k+1)
	}
	return out
}

// Every path returns the same as a search of the keys themselves, for every
// width and every place.
func TestPackedPages(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, packedSearches[uint32], packedSearches[uint64])
	})
}

func packedSearches[C Code](t *testing.T) {
	rng := seed.Rand(t)
	for _, w := range packedWidths[C]() {
		room := uint64(^C(0)) - (1<<w - 1)
		least := C(0)
		if room > 0 {
			least = C(rng.Uint64N(room))
		}
		keys := pageOf(least, w, rng)
		length := 1 + rng.IntN(PackedPage)
		for i := range keys[length:] {
			keys[length+i] = keys[length-1]
		}
		p := packedPages(keys, []uint64{w}, make([]byte, 64*1024))
		p.Len = uint64(length)
		checkPackedPage(t, p, keys[:length], w)
	}
}

func checkPackedPage[C Code](t *testing.T, p *Packed, keys []C, w uint64) {
	t.Helper()
	asked := packedAsks(keys)
	ranks, finds := make([]int, len(asked)), make([]int, len(asked))
	PackedRank(p, asked, ranks)
	PackedFind(p, asked, finds)
	for i, k := range asked {
		rank, found := slices.BinarySearch(keys, k)
		find := -1
		if found {
			find = rank
		}
		seek, equal := PackedSeek(p, 0, k)
		if ranks[i] != rank || finds[i] != find || seek != rank || equal != found {
			t.Fatalf("%d bits: key %d has rank %d, is at %d, Seek gives %d, %v; want %d, %v", w, k, ranks[i], finds[i], seek, equal, rank, found)
		}
	}
	for first := 0; first < PackedPage; first += PackedGroup {
		got := make([]C, PackedPage-first)
		Unpack(p, got, first)
		for i := range min(len(got), len(keys)-first) {
			if got[i] != keys[first+i] || PackedKey[C](p, first+i) != keys[first+i] {
				t.Fatalf("%d bits: key %d is %d, want %d", w, first+i, got[i], keys[first+i])
			}
		}
	}
}

// Batches of every length, at every distance, over pages of all widths.
func TestPackedBatches(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, packedBatches[uint32], packedBatches[uint64])
	})
}

func packedBatches[C Code](t *testing.T) {
	rng := seed.Rand(t)
	var keys []C
	var widths []uint64
	for next := C(0); len(widths) < 20; {
		w := rng.Uint64N(20)
		keys = append(keys, pageOf(next, w, rng)...)
		widths = append(widths, w)
		next = keys[len(keys)-1] + C(rng.IntN(2))
	}
	p := packedPages(keys, widths, make([]byte, 64*1024))
	for _, n := range []int{1, 2, 3, 7, 16, 127, 128, 129, 300} {
		p.Distance, p.Shift = uint64(rng.IntN(60)), uint64(rng.IntN(4))
		p.Ready()
		asked, ranks := make([]C, n), make([]int, n)
		for i := range asked {
			page := rng.IntN(len(widths))
			asked[i] = keys[page*PackedPage+rng.IntN(PackedPage)]
			first, _ := slices.BinarySearch(keys, asked[i])
			ranks[i] = first / PackedPage << p.Shift
		}
		finds := slices.Clone(ranks)
		PackedRank(p, asked, ranks)
		PackedFind(p, asked, finds)
		for i, k := range asked {
			if want, _ := slices.BinarySearch(keys, k); ranks[i] != want || finds[i] != want {
				t.Fatalf("%d queries, distance %d: key %d has rank %d, is at %d; want %d", n, p.Distance, k, ranks[i], finds[i], want)
			}
		}
	}
}

// Whatever a table says, no search reads outside the memory from Words to
// PackedSlack bytes past End, and it returns an entry.
func TestPackedGarbage(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, packedGarbage[uint32], packedGarbage[uint64])
	})
}

func packedGarbage[C Code](t *testing.T) {
	rng := seed.Rand(t)
	const count, end = 20, 200
	words := garbageRoom(t, end+PackedSlack/8)
	table := make([]PackedEntry, count)
	for range 200 {
		for i := range words {
			words[i] = rng.Uint64() >> rng.IntN(64)
		}
		for i := range table {
			at := rng.Uint64() >> rng.IntN(64)
			if rng.IntN(2) == 0 {
				at = end<<8 | rng.Uint64N(256)
			}
			table[i] = PackedEntry{rng.Uint64() >> rng.IntN(64), at}
		}
		p := &Packed{
			Table: unsafe.Pointer(&table[0]), Words: unsafe.Pointer(&words[0]), Last: count - 1, End: end,
			Len: rng.Uint64N(count * PackedPage), Distance: 5, Vals: unsafe.Pointer(&table[0]),
		}
		p.Ready()
		askGarbage[C](t, p, rng)
	}
}

func askGarbage[C Code](t *testing.T, p *Packed, rng *rand.Rand) {
	asked, ranks := make([]C, 100), make([]int, 100)
	for i := range asked {
		asked[i], ranks[i] = C(rng.Uint64())>>rng.IntN(32), int(rng.Uint64())
	}
	finds := slices.Clone(ranks)
	PackedRank(p, asked, ranks)
	PackedFind(p, asked, finds)
	for i, k := range asked {
		if ranks[i] < 0 || ranks[i] > int(p.Len) || finds[i] < -1 || finds[i] >= int(p.Len) {
			t.Fatalf("rank %d, found at %d of %d", ranks[i], finds[i], p.Len)
		}
		if rank, equal := PackedSeek(p, finds[i], k); rank < 0 || rank > int(p.Len) || equal && rank == int(p.Len) {
			t.Fatalf("rank %d of %d", rank, p.Len)
		}
		at := rng.IntN(int(p.Last+1)*PackedPage) &^ (PackedGroup - 1)
		Unpack(p, make([]C, PackedPage-at%PackedPage), at)
		PackedKey[C](p, at)
	}
}

// Difference agrees with shifting and masking a 64-bit word.
func TestDifference(t *testing.T) {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], 0xfedcba9876543210)
	for w := uint64(1); w <= 32; w++ {
		for j := range int(64 / w) {
			want := uint64(0xfedcba9876543210) >> (uint64(j) * w) & (1<<w - 1)
			if got := Difference(unsafe.Pointer(&b[0]), w, j); got != want {
				t.Errorf("difference %d of %d bits is %x, want %x", j, w, got, want)
			}
		}
	}
}
