package kernel_test

import (
	"errors"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/kernel"
)

// TestMost sorts as many keys as there may be, all of them equal, and adds up as
// many ones: numbers of entries need every bit that they have. It takes a GPU
// with 28 GB to spare.
func TestMost(t *testing.T) {
	d, err := cuda.Open(0)
	if err != nil {
		t.Skip("no GPU: ", err)
	}
	defer d.Close()
	n := kernel.MaxSort
	if free, err := d.FreeBytes(); err != nil || free < 13*int64(n) {
		t.Skipf("%d bytes are free: %v", free, err)
	}
	p := newPrimitive(t, d, kernel.Sorting)
	defer p.close(t)
	job := kernel.SortJob{KeyBits: 32, To: 8, N: n, Implicit: true}
	for at, bytes := range map[*device.Ptr]int{&job.Keys: 4 * n, &job.Keys2: 4*n + 4, &job.Places2: 4 * n, &job.Temp: kernel.SortTemp(n, 32)} {
		*at, err = p.room(bytes)
		must(t, err)
	}
	must(t, errors.Join(p.s.Fill(job.Keys, 1, 4*n), p.set.Sort(p.s, &p.params, &job)))
	counted(t, p, "places of equal keys", job.Places2, n)

	sum := newPrimitive(t, d, kernel.Summing)
	defer sum.close(t)
	must(t, errors.Join(p.s.Synchronize(), sum.set.Sum(sum.s, 32, job.Keys, n, job.Keys2, job.Temp)))
	counted(t, sum, "sums of ones", job.Keys2, n+1)
}

// counted tests that number i of n is i, in some places.
func counted(t *testing.T, p *primitive, what string, at device.Ptr, n int) {
	t.Helper()
	some := make([]uint32, 1<<16)
	for _, first := range []int{0, 1 << 30, n / 3 * 2, n - len(some)} {
		must(t, errors.Join(p.s.CopyOut(arena.Bytes(some), at+4*device.Ptr(first)), p.s.Synchronize()))
		for i, v := range some {
			if v != uint32(first+i) {
				t.Fatalf("%s: number %d is %d", what, first+i, v)
			}
		}
	}
}
