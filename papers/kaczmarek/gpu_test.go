package kaczmarek

import (
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// TestPagesOnGPU tests Kaczmarek's tree as TestPages does, with pages that are
// filled and split by many threads, too. It is skipped without a GPU.
func TestPagesOnGPU(t *testing.T) {
	d, err := cuda.Open(0)
	if err != nil {
		t.Skip("no GPU: ", err)
	}
	defer d.Close()
	t.Run("uint32", func(t *testing.T) { pagesOnGPU[uint32](t, d) })
	t.Run("uint64", func(t *testing.T) { pagesOnGPU[uint64](t, d) })
}

func pagesOnGPU[C simd.Code](t *testing.T, d device.Device) {
	set, err := kernel.LoadOnly(d, PagesSource)
	must(t, err)
	start := seed.Of(t)
	for _, shape := range []struct{ order, threads int }{{3, 32}, {4, 96}, {7, 64}, {100, 32}, {64, 512}, {16, 1024}} {
		for s := range uint64(seed.Count(10)) {
			p, err := NewPagesOf[C](d, set, shape.order, 512, shape.threads)
			must(t, err)
			pagesRounds(t, p, start+s)
			pagesLoads(t, p)
			must(t, p.Close())
		}
	}
}
