package stalls

import (
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// threadClocks knows how long each thread of the process ran on a core, but for
// the one it belongs to.
type threadClocks struct {
	own   int
	ids   []int
	times []time.Duration
}

func newThreadClocks() threadClocks { return threadClocks{own: syscall.Gettid()} }

// list looks which threads there are.
func (t *threadClocks) list() {
	t.ids = t.ids[:0]
	all, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, e := range all {
		if id, err := strconv.Atoi(e.Name()); err == nil && id != t.own {
			t.ids = append(t.ids, id)
		}
	}
	t.times = make([]time.Duration, len(t.ids))
}

// start notes how long they ran.
func (t *threadClocks) start() {
	for i, id := range t.ids {
		t.times[i] = threadTime(id)
	}
}

// most returns how long any of them ran since.
func (t *threadClocks) most() (most time.Duration) {
	for i, id := range t.ids {
		most = max(most, threadTime(id)-t.times[i])
	}
	return most
}

// threadTime reads the clock of a thread: its number is made of the thread's
// as the system's own headers make it.
func threadTime(id int) time.Duration {
	const perThread, scheduled = 4, 2
	clock := ^id<<3 | perThread | scheduled
	var ts syscall.Timespec
	if _, _, e := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&ts)), 0); e != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
