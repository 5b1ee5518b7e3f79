package work

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"
	"unsafe"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
)

const nameLimit = "limit: random 64 B reads"

const lineWords = 8 // words of 64 bits in a cache line

// ReadLimit is the machine's limit for a lookup that has to fetch one line of
// an index from memory: lines of a block as large as the index, read in random
// order, none waiting for another. It uses huge pages, as Pando does.
type ReadLimit struct {
	block *inside.Block
	words []uint64
	Lines []uint32 // the round's reads
	sum   uint64   // sum of what was read
	touch func(words []uint64, lines []uint32) uint64
}

// newReadLimit fills a block of about the given bytes.
func newReadLimit(bytes int64, reads int) (*ReadLimit, error) {
	lines := max(bytes/64, 1)
	if lines > 1<<32 {
		return nil, fmt.Errorf("a block of %s has too many lines to number with 32 bits", contest.GiB(bytes))
	}
	block, err := inside.NewBlock(int(lines) * 64)
	if err != nil {
		return nil, err
	}
	seg := block.Segment(0)
	l := &ReadLimit{
		block: block,
		words: unsafe.Slice((*uint64)(unsafe.Pointer(&seg[0])), len(seg)/8),
		Lines: make([]uint32, reads),
	}
	for i := range int(lines) {
		l.words[i*lineWords] = lineMark(uint32(i))
	}
	l.Fresh(data.NewRand(1, data.StreamQueries))
	l.touch = l.fastest()
	return l, nil
}

// lineMark returns what a line holds: its number, scrambled.
func lineMark(line uint32) uint64 { return uint64(line)*data.Odd + 1 }

func (l *ReadLimit) close() {
	l.block.Release()
	runtime.KeepAlive(l.block)
}

// Fresh draws the reads of a round.
func (l *ReadLimit) Fresh(rng *rand.Rand) { l.Draw(rng, l.Lines) }

// Draw fills lines with random line numbers.
func (l *ReadLimit) Draw(rng *rand.Rand, lines []uint32) {
	n := uint32(len(l.words)/lineWords - 1)
	for i := range lines {
		lines[i] = rng.Uint32()
		if n != ^uint32(0) {
			lines[i] = uint32(uint64(lines[i]) * uint64(n+1) >> 32)
		}
	}
}

// read does the first ops reads on the given number of threads.
func (l *ReadLimit) read(threads, ops int) {
	l.sum = uint64(contest.Spread(threads, ops, func(lo, hi int) int {
		return int(l.touch(l.words, l.Lines[lo:hi]))
	}))
	runtime.KeepAlive(l.block)
}

func (l *ReadLimit) check(ops int) error {
	want := uint64(0)
	for _, line := range l.Lines[:ops] {
		want += lineMark(line)
	}
	if l.sum != want {
		return fmt.Errorf("read a sum of %#x where it should be %#x", l.sum, want)
	}
	return nil
}

// fastest tries how far to unroll the loop: the variant that the processor
// overlaps best is the limit.
func (l *ReadLimit) fastest() (best func([]uint64, []uint32) uint64) {
	sample := l.Lines[:min(len(l.Lines), 1<<18)]
	least := time.Duration(1<<63 - 1)
	for range 3 {
		for _, touch := range []func([]uint64, []uint32) uint64{touch1, touch4, touch16} {
			start := time.Now()
			l.sum += touch(l.words, sample)
			if took := time.Since(start); took < least {
				least, best = took, touch
			}
		}
	}
	return best
}

func touch1(words []uint64, lines []uint32) (sum uint64) {
	for _, line := range lines {
		sum += words[uint64(line)*lineWords]
	}
	return sum
}

func touch4(words []uint64, lines []uint32) (sum uint64) {
	for ; len(lines) >= 4; lines = lines[4:] {
		a := words[uint64(lines[0])*lineWords]
		b := words[uint64(lines[1])*lineWords]
		c := words[uint64(lines[2])*lineWords]
		d := words[uint64(lines[3])*lineWords]
		sum += a + b + c + d
	}
	return sum + touch1(words, lines)
}

func touch16(words []uint64, lines []uint32) (sum uint64) {
	for ; len(lines) >= 16; lines = lines[16:] {
		var got [16]uint64
		for i, line := range (*[16]uint32)(lines) {
			got[i] = words[uint64(line)*lineWords]
		}
		for _, v := range got {
			sum += v
		}
	}
	return sum + touch1(words, lines)
}

// WithLimit calls body with the limit for an index of n entries, or with nil
// if it is not wanted or does not fit.
func WithLimit(s *contest.Session, perEntry float64, n int, body func(*ReadLimit) error) error {
	if !s.Fits(nameLimit, n, perEntry) {
		return body(nil)
	}
	s.Say("filling a block to find the limit, %s ...", contest.SizeText(n))
	l, err := newReadLimit(int64(perEntry*float64(n)), s.Queries)
	if err != nil {
		return err
	}
	defer l.close()
	return body(l)
}

// Subject returns the limit as a subject of a contest.
func (l *ReadLimit) Subject(threads int) *contest.Subject {
	return &contest.Subject{
		System: nameLimit,
		Do:     func(ops int) error { l.read(threads, ops); return nil },
		Check:  l.check,
	}
}
