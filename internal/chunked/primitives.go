package chunked

import (
	"encoding/binary"
	"math/bits"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
)

// maxScans is the most sums that a batch takes.
const maxScans = 9

// toldWords is the room for numbers that kernels tell the host in the course of a
// batch.
const toldWords = kernel.OwnedTold + 8

// Numbers that kernels tell, behind those of a batch that is done leaf by leaf.
const (
	toldOver    = kernel.OwnedTold + iota // chunks with too many operations for a flat merge; behind toldFailed
	toldEffects                           // changes that the batch comes to
	toldGrowth                            // how much longer a flat merge makes the tree
	toldEntries                           // how many entries there are then,
	_                                     // leaves that were freed,
	_                                     // and chunks
	toldSpread                            // the bits in which keys differ, in two words
	_
)

// toldFailed is whether keys are not in order.
const toldFailed = kernel.ToldFailed

// scans is temporary memory for the sums of a batch.
type scans struct {
	at   device.Ptr
	each int
	used int
}

// scanBytes returns the temporary memory of all sums of a batch, each of n
// numbers at most.
func scanBytes(n int) int { return maxScans * device.Aligned(kernel.SumTemp(n)) }

func (s *scans) next(n int) kernel.Scan {
	at := s.at + device.Ptr(s.used*s.each)
	if s.used++; s.used > maxScans || kernel.SumTemp(n) > s.each {
		panic("chunked: a batch has more sums, or longer ones, than was thought")
	}
	return kernel.Scan(at)
}

// start makes memory for a batch available: the estimated bytes, with sums of n
// numbers at most.
func (t *Tree[C]) start(bytes, n int) error {
	if err := t.work.Ensure(t.dev, t.run.Stream, bytes); err != nil {
		return err
	}
	t.scans = scans{at: t.work.Bytes(scanBytes(n)), each: device.Aligned(kernel.SumTemp(n))}
	t.told = t.work.Words(toldWords)
	return nil
}

// clearWork clears the memory taken so far, from a place on.
func (t *Tree[C]) clearWork(from int) error {
	return t.run.Stream.Fill(t.work.At+device.Ptr(from), 0, t.work.Used-from)
}

// sort sorts the keys of a batch, and clears the words that are to be 0.
func (t *Tree[C]) sort(a *applying, sorted bool) error {
	job := &a.job
	if int(a.N) >= t.shortcut { // others are sorted and cleared in one launch
		if err := t.run.Stream.Fill(job.Clear, 0, job.ClearBytes); err != nil {
			return err
		}
		job.Clear, job.ClearBytes = 0, 0
	}
	switch {
	case int(a.N) < t.shortcut:
	case sorted:
		job.To = 0 // places alone
	case t.run.Bits != 64:
	default:
		if err := t.shorten(job); err != nil {
			return err
		}
	}
	if err := t.run.Set.Sort(t.run.Stream, &t.params, job); err != nil {
		return err
	}
	a.Keys, a.Places = job.Sorted()
	if job.From == 0 {
		return nil
	}
	if err := t.run.Set.SortMend(t.run.Stream, job); err != nil {
		return err
	}
	a.Keys, a.Places = job.Keys+job.Keys2-a.Keys, job.Places+job.Places2-a.Places
	return nil
}

// shorten makes a sort of keys one by as few bits as can be. Keys mostly differ in
// the same bits as those of the batch before; and of these in the uppermost
// already, up to a few neighbours that are put in order later. Where that is not
// so, the batch has to be sorted again.
func (t *Tree[C]) shorten(job *kernel.SortJob) error {
	if t.sortTo == 0 {
		if err := t.askSpread(job.Keys, job.N); err != nil {
			return err
		}
	}
	job.To, job.Failed = t.sortTo, t.told+4*toldFailed
	short := *job
	short.From = max(0, job.To-(bits.Len(uint(job.N))+4)&^7) // four keys have the same bits, at random
	if short.Passes()+1 < job.Passes() && t.luck.tries() {
		*job = short
	}
	return nil
}

// luck is how sorts by a part of the key have gone.
type luck struct {
	wait  int  // batches for which it is not tried
	next  int  // for how many it will not be after the next time that it fails
	trial bool // the last one has not failed, as far as is known
}

// tries reports whether it is tried now.
func (l *luck) tries() bool {
	if l.trial {
		l.next = 0
	}
	l.trial = l.wait == 0
	l.wait = max(0, l.wait-1)
	return l.trial
}

// failed notes that it has failed: each time in a row it is tried half as often.
func (l *luck) failed() {
	l.next = min(max(2*l.next, patience), 128*patience)
	l.wait, l.trial = l.next, false
}

// askSpread finds out up to which bit keys differ.
func (t *Tree[C]) askSpread(keys device.Ptr, n int) error {
	if err := t.run.Set.SortSpread(t.run.Stream, keys, n, t.told+4*toldSpread); err != nil {
		return err
	}
	got, err := t.ask(toldSpread, 2)
	if err != nil {
		return err
	}
	t.sortTo = max(1, bits.Len64(uint64(got[1])<<32|uint64(got[0])))
	return nil
}

// sortAgain sorts a batch whose shortened sort has failed, and makes everything
// ready for it as begin does.
func (t *Tree[C]) sortAgain(a *applying) error {
	t.scans.used, t.work.Used = 0, a.used
	if err := t.run.Stream.Fill(t.work.At, 0, a.cleared); err != nil {
		return err
	}
	if err := t.askSpread(a.Keys, int(a.N)); err != nil {
		return err
	}
	t.luck.failed()
	job := &a.job
	job.Keys, job.Keys2 = a.Keys, job.Keys+job.Keys2-a.Keys
	job.Places, job.Places2 = a.Places, job.Places+job.Places2-a.Places
	job.From, job.To, job.Implicit, job.Failed = 0, t.sortTo, false, 0
	err := t.run.Set.Sort(t.run.Stream, &t.params, job)
	a.Keys, a.Places = job.Sorted()
	return err
}

const (
	// shortcutFrom is the number of operations from which on it is tried to sort
	// by a part of the key. Fewer are sorted in one launch.
	shortcutFrom = 2<<10 + 1
	// patience is the number of batches for which it is not tried after it failed.
	patience = 8
)

// ask returns n of the numbers that kernels tell, from one on, when all before is
// done.
func (t *Tree[C]) ask(from, n int) ([]int, error) { return t.askAnd(from, n, nil) }

// askAnd is ask that first queues the work to be done after it, unless that is nil.
func (t *Tree[C]) askAnd(from, n int, after func() error) ([]int, error) {
	bytes := t.results[:4*n]
	if err := t.run.Stream.CopyOut(bytes, t.told+device.Ptr(4*from)); err != nil {
		return nil, err
	}
	t.queuing = after != nil
	wait := t.run.Stream.Synchronize
	if after != nil {
		if err := t.run.Stream.Record(t.decided); err != nil {
			return nil, err
		}
		if err := after(); err != nil {
			return nil, err
		}
		wait = t.decided.Synchronize
	}
	if err := wait(); err != nil {
		return nil, err
	}
	out := make([]int, n)
	for i := range out {
		out[i] = int(binary.LittleEndian.Uint32(bytes[4*i:]))
	}
	return out, nil
}
