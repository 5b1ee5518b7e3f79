package arena

import (
	"runtime"
	"testing"
)

// What runs after every collection of a program allocates nothing but the object that tells of the next.
func TestCollectionsAllocateLittle(t *testing.T) {
	b, err := New([]int{megabyte}, 0, Small, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := testing.AllocsPerRun(20, func() {
		collecting.Lock()
		collected()
		begin()
		collecting.Unlock()
	})
	if n > 0 {
		t.Errorf("%v allocations after a collection", n)
	}
	if n := testing.AllocsPerRun(20, reckon); n > 0 {
		t.Errorf("%v allocations to reckon", n)
	}
	runtime.KeepAlive(b)
	b.Release()
}
