package kernel_test

import (
	"errors"
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
