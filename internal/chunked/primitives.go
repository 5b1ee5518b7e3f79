package chunked

import (
	"encoding/binary"
	"math/bits"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
)

// maxScans is the most sums that a batch takes.
const maxScans = 6

// toldWords is the room for what kernels tell the host in the course of a batch.
const toldWords = kernel.OwnedTold + 9

// What kernels tell, behind what they tell of a batch that is done leaf by leaf.
const (
	toldEffects = kernel.OwnedTold + iota
	toldOver    // chunks with too many operations for a flat merge
	toldGrowth  // how much longer a flat merge makes the tree
	toldEntries // how many entries there are then,
	_           // leaves that were freed,
	_           // and chunks
	toldSpread  // the bits in which keys differ, in two words
	_
	toldFailed // whether keys are not in order yet
)

// scans is temporary memory for the sums of a batch.
type scans struct {
	at   device.Ptr
	each int
	used int
}

// scanBytes returns the temporary memory of all sums of a batch, each of n
// numbers at most.
func scanBytes(n int) int { return maxScans * aligned(kernel.SumTemp(n)) }

func (s *scans) next(n int) kernel.Scan {
	at := s.at + device.Ptr(s.used*s.each)
	if s.used++; s.used > maxScans || kernel.SumTemp(n) > s.each {
		panic("chunked: a batch has more sums, or longer ones, than was thought")
	}
	return kernel.Scan(at)
}

// start makes memory for a batch available, of which so much has been reckoned,
// with sums of n numbers at most.
func (t *Tree[C]) start(bytes, n int) error {
	if err := t.work.ensure(t.dev, bytes); err != nil {
		return err
	}
	t.scans = scans{at: t.work.bytes(scanBytes(n)), each: aligned(kernel.SumTemp(n))}
	t.told = t.work.words(toldWords)
	return nil
}

// clearWork clears the memory taken so far, from a place on.
func (t *Tree[C]) clearWork(from int) error {
	return t.run.Stream.Fill(t.work.at+device.Ptr(from), 0, t.work.used-from)
}

// sort sorts the keys of a batch, and returns them, and where in the batch each
// was. What begins at temp has been cleared.
func (t *Tree[C]) sort(ops *Ops, temp device.Ptr) (keys, places device.Ptr, err error) {
	w := &t.work
	job := &kernel.SortJob{
		KeyBits: t.run.Bits, To: t.run.Bits, N: ops.N, Implicit: true, Cleared: true, Temp: temp,
		Keys: ops.Keys, Keys2: w.bytes(ops.N * t.run.Bits / 8), Places: w.words(ops.N), Places2: w.words(ops.N),
	}
	if ops.Sorted {
		job.To = 0 // places alone
	} else if ops.N >= t.shortcut && t.run.Bits == 64 {
		return t.sortShort(job)
	}
	err = t.run.Set.Sort(t.run.Stream, &t.params, job)
	keys, places = job.Sorted()
	return keys, places, err
}

// Many keys mostly differ in their upper bits already: in so many more of them
// than it takes to number the keys. So it is tried to sort by these alone, and to
// mend the rest.
const (
	shortcutFrom = 512 << 10
	shortcutBits = 6
)

// sortShort sorts by as few bits as can be.
func (t *Tree[C]) sortShort(job *kernel.SortJob) (keys, places device.Ptr, err error) {
	if err := t.run.Set.SortSpread(t.run.Stream, job.Keys, job.N, t.told+4*toldSpread); err != nil {
		return 0, 0, err
	}
	got, err := t.ask(toldSpread, 2)
	if err != nil {
		return 0, 0, err
	}
	job.To = bits.Len64(uint64(got[1])<<32 | uint64(got[0]))
	full := *job
	few := (bits.Len(uint(job.N)) + shortcutBits + 7) &^ 7
	if job.From = max(0, job.To-few); job.Passes()+1 >= full.Passes() {
		job = &full
	}
	if err := t.run.Set.Sort(t.run.Stream, &t.params, job); err != nil {
		return 0, 0, err
	}
	keys, places = job.Sorted()
	if job.From == 0 {
		return keys, places, nil
	}
	if err := t.run.Set.SortMend(t.run.Stream, job, t.told+4*toldFailed); err != nil {
		return 0, 0, err
	}
	got, err = t.ask(toldFailed, 1)
	other := job.Keys + job.Keys2 - keys
	if err != nil || got[0] == 0 {
		return other, job.Places + job.Places2 - places, err
	}
	full.Keys, full.Keys2, full.Places, full.Places2 = keys, other, places, job.Places+job.Places2-places
	full.Implicit, full.Cleared = false, false
	err = t.run.Set.Sort(t.run.Stream, &t.params, &full)
	keys, places = full.Sorted()
	return keys, places, err
}

// ask returns n of the numbers that kernels tell, from one on, when all before is
// done.
func (t *Tree[C]) ask(from, n int) ([]int, error) {
	bytes := t.results[:4*n]
	if err := t.run.Stream.CopyOut(bytes, t.told+device.Ptr(4*from)); err != nil {
		return nil, err
	}
	if err := t.run.Stream.Synchronize(); err != nil {
		return nil, err
	}
	out := make([]int, n)
	for i := range out {
		out[i] = int(binary.LittleEndian.Uint32(bytes[4*i:]))
	}
	return out, nil
}
