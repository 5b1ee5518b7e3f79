package order

import "math/bits"

// BenchmarkSolo shows little difference near these.
const (
	insertionMax = 20 // up to this many pairs are sorted by insertion
	tableBits    = 10 // maximum bits per digit: two tables of 4 KiB leave room in a level-1 cache of 48 KiB
	spareBits    = 5  // bits to sort by beyond the logarithm of the number of pairs: one code in 32 is in a run
)

// sortSolo sorts src stably into dst, which is either src itself or does not
// overlap it. scratch is at least as long, and overlaps neither.
//
// Two passes, from the low digit to the high one, sort by enough of the
// highest differing bits that few codes agree in all of them if they are
// random. Runs of codes that do agree are then sorted on their own. So the
// number of passes follows from the number of codes, not from their width.
// Each level of runs settles at least ten bits: there are at most seven
// levels.
func sortSolo[C Code, P any](dst, src, scratch pairs[C, P]) {
	n := len(src.codes)
	if n <= insertionMax {
		dst.copyFrom(src)
		insertionSort(dst)
		return
	}
	differing := uint64(differSolo(src.codes[0], src.codes))
	if differing == 0 {
		dst.copyFrom(src)
		return
	}
	scratch = scratch.slice(0, n)
	width := min((log2(n)+spareBits+1)/2, tableBits)
	mask := uint64(1)<<width - 1
	hi := max(bits.Len64(differing)-width, 0)
	rest := differing & (1<<hi - 1) // a gap between the two digits is left out
	if rest == 0 {
		passOnce(dst, src, scratch, hi, mask)
		return
	}
	lo := max(bits.Len64(rest)-width, 0)
	passTwice(dst, src, scratch, lo, hi, mask)
	if rest&(1<<lo-1) != 0 {
		sortRuns(dst, scratch, lo)
	}
}

// sortRuns sorts data, which is already sorted by the bits from shift up.
func sortRuns[C Code, P any](data, scratch pairs[C, P], shift int) {
	codes := data.codes
	for i := 1; i < len(codes); i++ {
		if uint64(codes[i]^codes[i-1])>>(shift&63) != 0 {
			continue
		}
		from := i - 1
		for i++; i < len(codes) && uint64(codes[i]^codes[from])>>(shift&63) == 0; i++ {
		}
		run := data.slice(from, i)
		sortSolo(run, run, scratch)
	}
}

// table holds for each value of a digit first the number of codes that have
// it, then the position of the next one.
type table [1 << tableBits]uint32

func (t *table) place(mask uint64) {
	var place uint32
	for i, n := range t[:mask+1] {
		t[i] = place
		place += n
	}
}

// passOnce sorts by the digit at shift.
func passOnce[C Code, P any](dst, src, scratch pairs[C, P], shift int, mask uint64) {
	var t table
	for _, c := range src.codes {
		t[uint64(c)>>(shift&63)&mask%(1<<tableBits)]++
	}
	t.place(mask)
	deal(scratch, src, &t, shift, mask)
	dst.copyFrom(scratch)
}

// passTwice sorts by the digit at lo, then by that at hi.
func passTwice[C Code, P any](dst, src, scratch pairs[C, P], lo, hi int, mask uint64) {
	var t, u table
	for _, c := range src.codes {
		t[uint64(c)>>(lo&63)&mask%(1<<tableBits)]++
		u[uint64(c)>>(hi&63)&mask%(1<<tableBits)]++
	}
	t.place(mask)
	u.place(mask)
	deal(scratch, src, &t, lo, mask)
	deal(dst, scratch, &u, hi, mask)
}

// deal moves each pair of src to the next position for its digit.
func deal[C Code, P any](dst, src pairs[C, P], next *table, shift int, mask uint64) {
	payload := src.payload[:len(src.codes)]
	to, toPayload := dst.codes, dst.payload[:len(dst.codes)]
	for i, c := range src.codes {
		d := uint64(c) >> (shift & 63) & mask % (1 << tableBits)
		at := next[d]
		next[d] = at + 1
		to[at] = c
		toPayload[at] = payload[i]
	}
}

func insertionSort[C Code, P any](data pairs[C, P]) {
	codes, payload := data.codes, data.payload
	for i := 1; i < len(codes); i++ {
		c, p := codes[i], payload[i]
		j := i
		for ; j > 0 && codes[j-1] > c; j-- {
			codes[j], payload[j] = codes[j-1], payload[j-1]
		}
		codes[j], payload[j] = c, p
	}
}
