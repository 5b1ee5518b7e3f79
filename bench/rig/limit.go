package rig

import (
	"errors"
	"fmt"
	"math"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/gpu"
)

// The names of the limits' rows.
const (
	NameGPULimit  = "limit: random 64 B reads on the GPU"
	NameCopyLimit = "limit: copies in and out at once"
)

// GatherLimit is the GPU's limit for a search that has to fetch one line of a
// leaf: see gpu.Limit.
type GatherLimit struct {
	g     *Rig
	l     *gpu.Limit
	depth int            // concurrent reads per thread: the best of gpu.Depths
	want  map[int]uint32 // the expected sum by number of reads
}

// WithGatherLimit calls body with the limit for leaves of the given bytes, or
// with nil if it is not wanted.
func WithGatherLimit(g *Rig, bytes int64, body func(*GatherLimit) error) error {
	if !g.S.Wanted(NameGPULimit) {
		return body(nil)
	}
	l, err := gpu.NewLimit(g.Dev, g.Stream, bytes, g.S.Seed)
	if err != nil {
		return err
	}
	limit := &GatherLimit{g: g, l: l, want: map[int]uint32{}}
	err = limit.tune()
	if err == nil {
		err = body(limit)
	}
	return errors.Join(err, l.Close())
}

// tune finds the fastest depth: the limit is what the GPU can do.
func (l *GatherLimit) tune() error {
	const tries = 1 << 24
	ops := min(l.g.S.Queries, tries)
	least := int64(math.MaxInt64)
	for _, depth := range gpu.Depths {
		err := l.g.Time(func() error { return l.l.Read(l.g.Stream, depth, ops) }, func() error { return l.l.Wipe(l.g.Stream) })
		if err != nil {
			return err
		}
		if err := l.check(ops); err != nil {
			return fmt.Errorf("%s, depth %d: %w", NameGPULimit, depth, err)
		}
		if took := l.g.took.Nanoseconds(); took < least {
			least, l.depth = took, depth
		}
	}
	l.g.S.Say("%s: %d reads of a thread at once are best", NameGPULimit, l.depth)
	return nil
}

func (l *GatherLimit) check(ops int) error {
	want, ok := l.want[ops]
	if !ok {
		want = uint32(contest.Spread(contest.AllCores(), ops, func(lo, hi int) int { return int(l.l.WantSum(lo, hi)) }))
		l.want[ops] = want
	}
	got, err := l.l.Sum(l.g.Stream)
	if err == nil && got != want {
		err = fmt.Errorf("read a sum of %#x where it should be %#x", got, want)
	}
	return err
}

// Subject returns the limit as a subject of a contest.
func (l *GatherLimit) Subject() *contest.Subject {
	return l.g.Subject(NameGPULimit, 0,
		func(ops int) error { return l.l.Read(l.g.Stream, l.depth, ops) },
		func(int) error { return l.l.Wipe(l.g.Stream) },
		l.check)
}

// CopyLimit is the limit for queries and answers that have to cross the bus:
// bytes in and, at the same time, bytes out per query, between page-locked
// memory and the GPU.
type CopyLimit struct {
	g          *Rig
	bytes      Crossing
	back       Stream
	backDone   Event
	in, out    []byte // page-locked
	there      Ptr
	here       Ptr
	pattern    uint32 // of what is copied out, a different one each time
	sent, came int    // bytes of the buffers that the last copies used
}

// CopyBuffer bounds the page-locked memory of one direction. It is larger than
// the caches, and small enough to page-lock quickly; more is copied by reusing
// it.
const CopyBuffer = 256 << 20

// Crossing returns the bytes that ops queries take on their way in and out.
type Crossing func(ops int) (in, out int)

// QueryBytes counts a key of 64 bits in, a value and a found bit out.
func QueryBytes(ops int) (in, out int) { return 8 * ops, 8*ops + (ops+7)/8 }

// NodeBytes counts a key of 64 bits in, the number of the node it has reached
// out.
func NodeBytes(ops int) (in, out int) { return 8 * ops, 4 * ops }

// WithCopyLimit calls body with the limit, with buffers of at most most bytes,
// or with nil if it is not wanted.
func WithCopyLimit(g *Rig, bytes Crossing, most int, body func(*CopyLimit) error) error {
	if !g.S.Wanted(NameCopyLimit) {
		return body(nil)
	}
	l := &CopyLimit{g: g, bytes: bytes}
	err := l.prepare(most)
	if err == nil {
		err = body(l)
	}
	return errors.Join(err, l.close())
}

func (l *CopyLimit) prepare(most int) (err error) {
	in, out := l.bytes(l.g.S.Queries)
	if l.in, err = l.g.Dev.HostAlloc(min(in, most)); err != nil {
		return err
	}
	if l.out, err = l.g.Dev.HostAlloc((min(out, most) + 3) / 4 * 4); err != nil {
		return err
	}
	if l.there, err = l.g.Alloc(len(l.in)); err != nil {
		return err
	}
	if l.here, err = l.g.Alloc(len(l.out)); err != nil {
		return err
	}
	if l.back, err = l.g.Dev.NewStream(); err != nil {
		return err
	}
	l.backDone, err = l.g.Dev.NewEvent()
	words := inWords(l.in)
	for i := range words {
		words[i] = uint32(i)*uint32(data.Odd) + 1
	}
	return err
}

func (l *CopyLimit) close() error {
	var errs []error
	for _, b := range [][]byte{l.in, l.out} {
		if b != nil {
			errs = append(errs, l.g.Dev.HostFree(b))
		}
	}
	if l.backDone != nil {
		errs = append(errs, l.backDone.Close())
	}
	if l.back != nil {
		errs = append(errs, l.back.Close())
	}
	return errors.Join(errs...)
}

// work queues the copies of both directions, each in a stream of its own; the
// rig's stream continues when both are done.
func (l *CopyLimit) work(ops int) error {
	in, out := l.bytes(ops)
	l.sent, l.came = min(in, len(l.in)), min(out, len(l.out))
	errs := []error{l.back.Wait(l.g.begin)}
	for ; in > 0; in -= len(l.in) {
		errs = append(errs, l.g.Stream.CopyIn(l.there, l.in[:min(in, len(l.in))]))
	}
	for ; out > 0; out -= len(l.out) {
		errs = append(errs, l.back.CopyOut(l.out[:min(out, len(l.out))], l.here))
	}
	return errors.Join(append(errs, l.back.Record(l.backDone), l.g.Stream.Wait(l.backDone))...)
}

// wipe overwrites what was copied before, in both directions.
func (l *CopyLimit) wipe(int) error {
	l.pattern += uint32(data.Odd)
	return errors.Join(l.g.Stream.Fill(l.here, l.pattern, len(l.out)), l.g.Stream.Fill(l.there, 0, len(l.in)))
}

// check checks all that was copied out, and copies back what was copied in.
func (l *CopyLimit) check(int) error {
	for i, w := range inWords(l.out[:l.came]) {
		if w != l.pattern {
			return fmt.Errorf("word %d came out as %#x and not %#x", i, w, l.pattern)
		}
	}
	sent := inWords(l.in[:l.sent])
	return ReadBack(l.g, l.there, len(sent), func(first int, part []uint32) error {
		for i, w := range part {
			if w != sent[first+i] {
				return fmt.Errorf("word %d went in as %#x and not %#x", first+i, w, sent[first+i])
			}
		}
		return nil
	})
}

// Subject returns the limit as a subject of a contest.
func (l *CopyLimit) Subject() *contest.Subject {
	return l.g.Subject(NameCopyLimit, 0, l.work, l.wipe, l.check)
}
