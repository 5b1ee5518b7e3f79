//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"math"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

// A range of host memory grows piece by piece at one address, keeps what it has, and
// gives everything back.
func TestHostRange(t *testing.T) {
	f, d := newFake(t, 1)
	g := open(t, d, 0)
	r := must[device.HostRange](t)(g.ReserveHost(40 * hostGranule))
	if r.Len() != 0 || uintptr(r.Base()) == 0 {
		t.Errorf("%d bytes are there at %#x", r.Len(), r.Base())
	}
	for i, n := range []int64{1, hostGranule, hostGranule + 1, 20 * hostGranule, 20*hostGranule + 1, 40 * hostGranule} {
		check(t, r.Grow(n))
		b := r.Bytes()
		if int64(len(b)) < n || r.Len() != int64(len(b)) || uintptr(r.Base()) != start(b) {
			t.Fatalf("%d bytes of %d are there", len(b), n)
		}
		b[n-1] = byte(i + 1)
		if i > 0 && b[0] != 1 {
			t.Fatal("what was there is gone")
		}
	}
	if pieces := f.count(cuMemHostRegister); pieces != 5 {
		t.Errorf("%d pieces", pieces)
	}
	wantKind(t, r.Grow(40*hostGranule+1), device.ErrOutOfMemory)
	check(t, r.Free())
	check(t, r.Free())
	if _, live := f.state(); live != 0 {
		t.Errorf("%d things are left", live)
	}
	if err := r.Grow(1); err == nil {
		t.Error("a range that is freed has grown")
	}
	check(t, g.Close())
}

// Where the host does not lock as much as it might, it locks what is needed; where it
// locks nothing, the range stays as it was.
func TestHostRangeFails(t *testing.T) {
	f, d := newFake(t, 1)
	g := open(t, d, 0)
	r := must[device.HostRange](t)(g.ReserveHost(64 * hostGranule))
	check(t, r.Grow(32*hostGranule))
	before, _ := f.state()
	f.failWith(func(e entry, n int) result {
		if e == cuMemHostRegister && n <= before+2 { // each call sets its context first
			return 2
		}
		return 0
	})
	check(t, r.Grow(32*hostGranule+1))
	if r.Len() != 33*hostGranule {
		t.Errorf("%d pieces are there", r.Len()/hostGranule)
	}
	f.failWith(func(e entry, _ int) result {
		if e == cuMemHostRegister {
			return 2
		}
		return 0
	})
	wantKind(t, r.Grow(60*hostGranule), device.ErrOutOfMemory)
	if r.Len() != 33*hostGranule {
		t.Errorf("%d pieces are there", r.Len()/hostGranule)
	}
	f.failWith(nil)
	check(t, r.Grow(60*hostGranule))
	check(t, g.Close())

	f.mapper.able = 0
	g = open(t, d, 0)
	_, err := g.ReserveHost(1)
	wantKind(t, err, device.ErrUnsupported)
	f.mapper.able = 1
	if _, err := g.ReserveHost(0); err == nil {
		t.Error("no bytes were reserved")
	}
	_, err = g.ReserveHost(math.MaxInt64)
	wantKind(t, err, device.ErrOutOfMemory)
	check(t, g.Close())
}
