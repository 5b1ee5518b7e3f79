package main

import (
	"errors"
	"fmt"
	"math"

	"github.com/pando-index/pando/bench/gpu"
	"github.com/pando-index/pando/internal/device"
)

const (
	nameGPULimit  = "limit: random 64 B reads on the GPU"
	nameCopyLimit = "limit: copies in and out at once"
)

// gatherLimit is the GPU's limit for a search that has to fetch one line of a
// leaf: see gpu.Limit.
type gatherLimit struct {
	g     *gpuRig
	l     *gpu.Limit
	depth int            // concurrent reads per thread: the best of gpu.Depths
	want  map[int]uint32 // the expected sum by number of reads
}

// withGatherLimit calls body with the limit for leaves of the given bytes, or
// with nil if it is not wanted.
func withGatherLimit(g *gpuRig, bytes int64, body func(*gatherLimit) error) error {
	if !g.s.wanted(nameGPULimit) {
		return body(nil)
	}
	l, err := gpu.NewLimit(g.dev, g.stream, bytes, g.s.seed)
	if err != nil {
		return err
	}
	limit := &gatherLimit{g: g, l: l, want: map[int]uint32{}}
	err = limit.tune()
	if err == nil {
		err = body(limit)
	}
	return errors.Join(err, l.Close())
}

// tune finds the fastest depth: the limit is what the GPU can do.
func (l *gatherLimit) tune() error {
	const tries = 1 << 24
	ops := min(l.g.s.queries, tries)
	least := int64(math.MaxInt64)
	for _, depth := range gpu.Depths {
		err := l.g.time(func() error { return l.l.Read(l.g.stream, depth, ops) }, func() error { return l.l.Wipe(l.g.stream) })
		if err != nil {
			return err
		}
		if err := l.check(ops); err != nil {
			return fmt.Errorf("%s, depth %d: %w", nameGPULimit, depth, err)
		}
		if took := l.g.took.Nanoseconds(); took < least {
			least, l.depth = took, depth
		}
	}
	l.g.s.say("%s: %d reads of a thread at once are best", nameGPULimit, l.depth)
	return nil
}

func (l *gatherLimit) check(ops int) error {
	want, ok := l.want[ops]
	if !ok {
		want = uint32(spread(allCores(), ops, func(lo, hi int) int { return int(l.l.WantSum(lo, hi)) }))
		l.want[ops] = want
	}
	got, err := l.l.Sum(l.g.stream)
	if err == nil && got != want {
		err = fmt.Errorf("read a sum of %#x where it should be %#x", got, want)
	}
	return err
}

func (l *gatherLimit) subject() *subject {
	return l.g.subject(nameGPULimit, 0,
		func(ops int) error { return l.l.Read(l.g.stream, l.depth, ops) },
		func(int) error { return l.l.Wipe(l.g.stream) },
		l.check)
}

// copyLimit is the limit for queries and answers that have to cross the bus:
// bytes in and, at the same time, bytes out per query, between page-locked
// memory and the GPU.
type copyLimit struct {
	g          *gpuRig
	bytes      crossing
	back       device.Stream
	backDone   device.Event
	in, out    []byte // page-locked
	there      device.Ptr
	here       device.Ptr
	pattern    uint32 // of what is copied out, a different one each time
	sent, came int    // bytes of the buffers that the last copies used
}

// copyBuffer bounds the page-locked memory of one direction. It is larger than
// the caches, and small enough to page-lock quickly; more is copied by reusing
// it.
const copyBuffer = 256 << 20

// crossing returns the bytes that ops queries take on their way in and out.
type crossing func(ops int) (in, out int)

// queryBytes counts a key of 64 bits in, a value and a found bit out.
func queryBytes(ops int) (in, out int) { return 8 * ops, 8*ops + (ops+7)/8 }

// nodeBytes counts a key of 64 bits in, the number of the node it has reached
// out.
func nodeBytes(ops int) (in, out int) { return 8 * ops, 4 * ops }

// withCopyLimit calls body with the limit, with buffers of at most most bytes,
// or with nil if it is not wanted.
func withCopyLimit(g *gpuRig, bytes crossing, most int, body func(*copyLimit) error) error {
	if !g.s.wanted(nameCopyLimit) {
		return body(nil)
	}
	l := &copyLimit{g: g, bytes: bytes}
	err := l.prepare(most)
	if err == nil {
		err = body(l)
	}
	return errors.Join(err, l.close())
}

func (l *copyLimit) prepare(most int) (err error) {
	in, out := l.bytes(l.g.s.queries)
	if l.in, err = l.g.dev.HostAlloc(min(in, most)); err != nil {
		return err
	}
	if l.out, err = l.g.dev.HostAlloc((min(out, most) + 3) / 4 * 4); err != nil {
		return err
	}
	if l.there, err = l.g.alloc(len(l.in)); err != nil {
		return err
	}
	if l.here, err = l.g.alloc(len(l.out)); err != nil {
		return err
	}
	if l.back, err = l.g.dev.NewStream(); err != nil {
		return err
	}
	l.backDone, err = l.g.dev.NewEvent()
	words := inWords(l.in)
	for i := range words {
		words[i] = uint32(i)*uint32(odd) + 1
	}
	return err
}

func (l *copyLimit) close() error {
	var errs []error
	for _, b := range [][]byte{l.in, l.out} {
		if b != nil {
			errs = append(errs, l.g.dev.HostFree(b))
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
func (l *copyLimit) work(ops int) error {
	in, out := l.bytes(ops)
	l.sent, l.came = min(in, len(l.in)), min(out, len(l.out))
	errs := []error{l.back.Wait(l.g.begin)}
	for ; in > 0; in -= len(l.in) {
		errs = append(errs, l.g.stream.CopyIn(l.there, l.in[:min(in, len(l.in))]))
	}
	for ; out > 0; out -= len(l.out) {
		errs = append(errs, l.back.CopyOut(l.out[:min(out, len(l.out))], l.here))
	}
	return errors.Join(append(errs, l.back.Record(l.backDone), l.g.stream.Wait(l.backDone))...)
}

// wipe overwrites what was copied before, in both directions.
func (l *copyLimit) wipe(int) error {
	l.pattern += uint32(odd)
	return errors.Join(l.g.stream.Fill(l.here, l.pattern, len(l.out)), l.g.stream.Fill(l.there, 0, len(l.in)))
}

// check checks all that was copied out, and copies back what was copied in.
func (l *copyLimit) check(int) error {
	for i, w := range inWords(l.out[:l.came]) {
		if w != l.pattern {
			return fmt.Errorf("word %d came out as %#x and not %#x", i, w, l.pattern)
		}
	}
	sent := inWords(l.in[:l.sent])
	return readBack(l.g, l.there, len(sent), func(first int, part []uint32) error {
		for i, w := range part {
			if w != sent[first+i] {
				return fmt.Errorf("word %d went in as %#x and not %#x", first+i, w, sent[first+i])
			}
		}
		return nil
	})
}

func (l *copyLimit) subject() *subject {
	return l.g.subject(nameCopyLimit, 0, l.work, l.wipe, l.check)
}
