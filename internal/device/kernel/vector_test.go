package kernel_test

import (
	"errors"
	"regexp"
	"testing"

	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/simd"
)

// What vector kernels cannot do is refused. Package vector tries what they can.
func TestVectorsRefuse(t *testing.T) {
	p := newPrimitive(t, ptx.New(), kernel.FrozenVectors)
	one := kernel.OneRange(0, 1, 1)
	for name, v := range map[string]*kernel.Vectors{
		"no units":        {Kind: simd.Int32},
		"too large units": {Kind: simd.Int32, Units: kernel.OneRange(0, kernel.MaxUnit+1, kernel.MaxUnit+1)},
		"too many bounds": {Kind: simd.Int32, Units: one, Bins: &kernel.Bins{Count: kernel.MaxBounds + 1}},
	} {
		if err := p.set.Column(p.s, &p.params, v, 0); !errors.Is(err, kernel.ErrBadJob) {
			t.Errorf("%s: %v", name, err)
		}
	}
	narrow := &kernel.Chunked{Set: p.set, Stream: p.s, Bits: 32}
	if err := narrow.Values(p.set, &kernel.Version{}, &kernel.Vectors{Kind: simd.Int64, Units: one}); !errors.Is(err, kernel.ErrBadJob) {
		t.Errorf("values of 8 bytes in a tree of 32 bits: %v", err)
	}
	p.close(t)
}

// Every operation of floats names its rounding: PTX lets the driver fuse an addition
// with a multiplication where neither does, and a sum would then have other bits.
func TestFloatsNameTheirRounding(t *testing.T) {
	arithmetic := regexp.MustCompile(`\b(add|sub|mul|fma|mad|div)(\.\w+)*\.f(32|64)\b`)
	for _, src := range []kernel.Source{kernel.FrozenVectors, kernel.ChunkedVectors} {
		found := arithmetic.FindAllString(src.Text(), -1)
		if len(found) == 0 {
			t.Error("no floats are added")
		}
		for _, op := range found {
			if op != "add.rn.f64" {
				t.Fatalf("%s, want add.rn.f64 only", op)
			}
		}
	}
	for _, src := range []kernel.Source{kernel.FrozenHistograms, kernel.ChunkedHistograms} {
		if op := arithmetic.FindString(src.Text()); op != "" {
			t.Errorf("%s in a kernel that only compares", op)
		}
	}
}
