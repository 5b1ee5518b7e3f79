package chunked

import (
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
)

// primitiveBytes returns the temporary memory that sorting and summing take, for
// n operations and so many chunks.
func (t *Tree[C]) primitiveBytes(n, chunks int) int {
	return aligned(kernel.SortTemp(n, t.run.Bits)) + maxSums*aligned(kernel.SumTemp(max(n, chunks)))
}

// maxSums is the most sums that a batch takes.
const maxSums = 8

// ensure makes memory for a batch available; sums are of so many numbers at most.
// Their temporary memory is cleared at once for all of them.
func (t *Tree[C]) ensure(bytes, sums int) error {
	if err := t.work.ensure(t.dev, bytes); err != nil {
		return err
	}
	t.sumBytes, t.sumCount = aligned(kernel.SumTemp(sums)), 0
	t.sums = t.work.bytes(maxSums * t.sumBytes)
	return t.run.Stream.Fill(t.sums, 0, maxSums*t.sumBytes)
}

// sum sets out to the sums of n numbers before each, and of all.
func (t *Tree[C]) sum(in, out device.Ptr, n int) error {
	temp := t.sums + device.Ptr(t.sumCount*t.sumBytes)
	if t.sumCount++; t.sumCount > maxSums || kernel.SumTemp(n) > t.sumBytes {
		panic("chunked: a batch has more sums, or longer ones, than was thought")
	}
	return t.run.Set.SumCleared(t.run.Stream, &t.params, 32, in, n, out, temp)
}

// sort sorts the keys of a batch, and returns them, and where in the batch each
// was.
func (t *Tree[C]) sort(ops *Ops) (keys, places device.Ptr, err error) {
	w := &t.work
	job := &kernel.SortJob{
		KeyBits: t.run.Bits, To: t.run.Bits, N: ops.N, Implicit: true,
		Keys: ops.Keys, Keys2: w.bytes(ops.N * t.run.Bits / 8), Places: w.words(ops.N), Places2: w.words(ops.N),
		Temp: w.bytes(kernel.SortTemp(ops.N, t.run.Bits)),
	}
	if ops.Sorted {
		job.To = 0 // places alone
	}
	if err := t.run.Set.Sort(t.run.Stream, &t.params, job); err != nil {
		return 0, 0, err
	}
	keys, places = job.Sorted()
	return keys, places, nil
}
