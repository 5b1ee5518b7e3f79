package arena

import (
	"errors"
	"math"
	"runtime"
	"testing"
	"time"
	"unsafe"
)

func TestSegmentsAreAlignedApartAndZero(t *testing.T) {
	for _, pages := range []Pages{Small, HugeInner, HugeAll} {
		b, err := New([]int{1, 5000, 3 << 20, 0, 77}, 1<<20, pages, 0)
		if err != nil {
			t.Fatal(pages, err)
		}
		for i := range 5 {
			s := b.Segment(i)
			if a := uintptr(unsafe.Pointer(unsafe.SliceData(s))); a%Align != 0 {
				t.Errorf("%v: segment %d at %#x", pages, i, a)
			}
			for j := range s {
				if s[j] != 0 {
					t.Fatalf("%v: segment %d byte %d is %d", pages, i, j, s[j])
				}
				s[j] = byte(i + 1)
			}
		}
		for i := range 5 {
			for j, v := range b.Segment(i) {
				if v != byte(i+1) {
					t.Fatalf("%v: segment %d byte %d overwritten with %d", pages, i, j, v)
				}
			}
		}
		b.Release()
	}
}

func TestLimitTakesNothing(t *testing.T) {
	before := InUse()
	for _, sizes := range [][]int{{1 << 20, 1 << 20}, {-1}, {math.MaxInt / 2, math.MaxInt / 2, math.MaxInt / 2}} {
		if _, err := New(sizes, 0, Small, 1<<20); !errors.Is(err, ErrLimit) {
			t.Errorf("New(%v) with a limit of 1 MiB: %v", sizes, err)
		}
	}
	if after := InUse(); after != before {
		t.Errorf("in use %d, before %d", after, before)
	}
}

func TestReleaseKeepsAddressesReadable(t *testing.T) {
	before := InUse()
	b, err := New([]int{1 << 20, 8 << 20}, 4096, HugeAll, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := b.Segment(1)
	s[len(s)-1] = 9
	b.Release()
	b.Release()
	if InUse() != before {
		t.Errorf("in use %d after Release, %d before", InUse(), before)
	}
	_ = s[len(s)-1] // must not fault
	runtime.KeepAlive(b)
}

func TestForgottenBlockIsFreed(t *testing.T) {
	before := InUse()
	func() {
		if _, err := New([]int{1 << 20}, 0, Small, 0); err != nil {
			t.Fatal(err)
		}
	}()
	for range 2000 { // others may keep the machine busy
		runtime.GC()
		if InUse() == before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("in use %d, want %d", InUse(), before)
}
