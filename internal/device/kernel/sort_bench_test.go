package kernel_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/simd"
)

var primitiveSizes = []int{64 << 10, 1 << 20, 16 << 20, 64 << 20}

// BenchmarkSort times sorts of pairs on a GPU, by the number of a leaf and by
// whole keys, with small and with large tiles: Gpairs/s is billions of pairs per
// second, best of all rounds, timed by events.
//
//	./run.sh test internal/device/kernel -test.run '^$' -test.bench 'Sort|Sum'
func BenchmarkSort(b *testing.B) {
	d, err := cuda.Open(0)
	if err != nil {
		b.Skip("no GPU: ", err)
	}
	defer d.Close()
	for _, n := range primitiveSizes {
		for _, large := range []bool{false, true} {
			tiles := map[bool]string{false: "small", true: "large"}[large]
			b.Run(fmt.Sprintf("22 bits of 32/%dK/%s", n>>10, tiles), func(b *testing.B) { timeSort[uint32](b, d, n, 22, large) })
			b.Run(fmt.Sprintf("64 bits of 64/%dK/%s", n>>10, tiles), func(b *testing.B) { timeSort[uint64](b, d, n, 64, large) })
		}
	}
}

// timeSort times a sort with implicit places by the lowest bits of random keys.
func timeSort[C simd.Code](b *testing.B, d device.Device, n, bits int, large bool) {
	rng := rand.New(rand.NewPCG(1, 2))
	keys := make([]C, n)
	for i := range keys {
		keys[i] = C(rng.Uint64())
	}
	p := newPrimitive(b, d, kernel.Sorting)
	defer p.close(b)
	w := widthOf[C]() / 8
	job := kernel.SortJob{KeyBits: 8 * w, To: bits, N: n, Implicit: true}
	job.UseTiles(large)
	var fresh device.Ptr
	for at, bytes := range map[*device.Ptr]int{&fresh: w * n, &job.Keys: w * n, &job.Keys2: w * n, &job.Places: 4 * n, &job.Places2: 4 * n, &job.Temp: job.TempBytes()} {
		var err error
		*at, err = p.room(bytes)
		must(b, err)
	}
	must(b, errors.Join(p.s.CopyIn(fresh, arena.Bytes(keys)), p.s.Synchronize()))
	p.time(b, n, "Gpairs/s", func() error { return p.s.CopyDevice(job.Keys, fresh, w*n) },
		func() error { return p.set.Sort(p.s, &p.params, &job) })
}

// BenchmarkSum times prefix sums on a GPU: Gsums/s is billions of them per second.
func BenchmarkSum(b *testing.B) {
	d, err := cuda.Open(0)
	if err != nil {
		b.Skip("no GPU: ", err)
	}
	defer d.Close()
	for _, n := range primitiveSizes {
		for _, bits := range []int{32, 64} {
			b.Run(fmt.Sprintf("%d bits/%dK", bits, n>>10), func(b *testing.B) { timeSum(b, d, n, bits) })
		}
	}
}

func timeSum(b *testing.B, d device.Device, n, bits int) {
	p := newPrimitive(b, d, kernel.Summing)
	defer p.close(b)
	in, err := p.room(4 * n)
	must(b, err)
	out, err := p.room(bits / 8 * (n + 1))
	must(b, err)
	temp, err := p.room(kernel.SumTemp(n))
	must(b, err)
	p.time(b, n, "Gsums/s", func() error { return p.s.Fill(in, 3, 4*n) },
		func() error { return p.set.Sum(p.s, bits, in, n, out, temp) })
}

// time reports the best of all rounds. What prepare queues is not timed.
func (p *primitive) time(b *testing.B, n int, unit string, prepare, run func() error) {
	b.Helper()
	before, err := p.d.NewEvent()
	must(b, err)
	after, err := p.d.NewEvent()
	must(b, err)
	best := 0.0
	for b.Loop() {
		must(b, errors.Join(prepare(), p.s.Record(before), run(), p.s.Record(after), after.Synchronize()))
		ms, err := after.Since(before)
		must(b, err)
		if best == 0 || ms < best {
			best = ms
		}
	}
	b.ReportMetric(float64(n)/best/1e6, unit)
	b.ReportMetric(1e3*best, "best-µs")
	must(b, errors.Join(before.Close(), after.Close()))
}
