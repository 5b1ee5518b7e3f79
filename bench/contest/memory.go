package contest

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
)

// Fits reports whether a system is wanted and n entries of it fit into free
// memory.
func (s *Session) Fits(name string, n int, perEntry float64) bool {
	return s.Wanted(name) && s.Room(name, n, perEntry, fmt.Sprintf("alone it may fit: --systems %q", name))
}

// Room reports whether n entries of something fit into free memory. If not, it
// prints a line that says so, with advice.
func (s *Session) Room(what string, n int, perEntry float64, advice string) bool {
	need, free := int64(float64(n)*perEntry), FreeMemory()
	if need > free {
		s.Skip("%s at n %s: needs about %s, %s of memory are free; %s", what, SizeText(n), GiB(need), GiB(free), advice)
		return false
	}
	return true
}

// headroom is the memory that stays free for the system and for the runs
// themselves.
const headroom = 1 << 30

// FreeMemory returns the memory that may still be allocated. If the machine
// does not report it, everything is tried.
func FreeMemory() int64 {
	free := memInfo("MemAvailable")
	if free == 0 {
		return math.MaxInt64
	}
	return free - headroom
}

// LimitHeap makes the garbage collector work harder as the machine's memory
// runs out, until the function it returns is called.
func LimitHeap() (restore func()) {
	free := FreeMemory()
	if free == math.MaxInt64 {
		return func() {}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	oldLimit := debug.SetMemoryLimit(int64(m.Sys-m.HeapReleased) + max(free, headroom/4))
	oldPercent := debug.SetGCPercent(50)
	return func() {
		debug.SetMemoryLimit(oldLimit)
		debug.SetGCPercent(oldPercent)
	}
}

// GiB formats bytes.
func GiB(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }

// HeapGrowth builds something on the Go heap and returns the bytes that the
// heap grew by.
func HeapGrowth(build func()) float64 {
	before := liveHeap()
	build()
	return max(0, float64(liveHeap())-float64(before))
}

// liveHeap also returns free pages to the system, so that the next fits sees
// them.
func liveHeap() uint64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
