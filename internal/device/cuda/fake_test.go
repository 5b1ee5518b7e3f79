//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

// fake is a driver library in Go, called through the same C calls as the real
// one. It has memory that can be copied, runs no kernels, and records misuse:
// a call without the right context on its thread, a dead handle, a double
// free.
type fake struct {
	mu       sync.Mutex
	gpus     int
	next     uintptr            // the next handle or address
	current  map[int]uintptr    // current context of each thread
	users    map[int]int        // number of retains of each GPU's primary context
	contexts map[int]uintptr    // existing primary contexts
	dead     map[uintptr]result // contexts that a sticky error has ended
	live     map[uintptr]thing  // what has to be freed
	shared   map[uintptr]int    // dynamic shared memory granted to a function
	mapper   mapper
	capturer capturer
	last     launched
	launches int
	calls    [entryCount]int
	total    int
	misuse   []string
	leaked   []thing // what a context still held when it was destroyed
	fail     func(e entry, n int) result
}

// thing is an object that a context owns.
type thing struct {
	freedBy entry
	context uintptr
	bytes   []byte // contents of device and page-locked memory
}

// launched is what the driver received with a launch.
type launched struct {
	function, stream uintptr
	grid             device.Grid
	params           []byte
}

// active is the fake that the callbacks serve: C functions cannot be made for
// each test, because their number is limited.
var active atomic.Pointer[fake]

// newFake returns a driver with the given number of GPUs. The test fails if
// the driver is misused.
func newFake(t testing.TB, gpus int) (*fake, *driver) {
	f := &fake{
		gpus: gpus, next: 1 << 40,
		current: map[int]uintptr{}, users: map[int]int{}, contexts: map[int]uintptr{},
		dead: map[uintptr]result{}, live: map[uintptr]thing{}, shared: map[uintptr]int{},
		mapper: newMapper(), capturer: newCapturer(),
	}
	active.Store(f)
	t.Cleanup(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, m := range f.misuse {
			t.Error("misuse of the driver:", m)
		}
	})
	return f, &driver{address: fakeAddresses(), contexts: map[int]*context{}}
}

func (f *fake) wrong(format string, args ...any) {
	if len(f.misuse) < 10 {
		f.misuse = append(f.misuse, fmt.Sprintf(format, args...))
	}
}

// serve runs one call: it counts the call, fails it if the test says so, and
// otherwise executes it.
func serve(e entry, do func(f *fake) result) uintptr {
	f := active.Load()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[e]++
	f.total++
	if f.fail != nil {
		if r := f.fail(e, f.total); r != 0 {
			if _, dead := r.meaning(); dead {
				f.dead[f.current[syscall.Gettid()]] = r
			}
			return uintptr(r)
		}
	}
	return uintptr(do(f))
}

// serveIn is serve for calls that need a context, which it checks.
func serveIn(e entry, do func(f *fake, context uintptr) result) uintptr {
	return serve(e, func(f *fake) result {
		c := f.current[syscall.Gettid()]
		if !f.alive(c) {
			f.wrong("%v: the thread's context is %#x, which is none", e, c)
			return 201
		}
		if r := f.dead[c]; r != 0 {
			return r
		}
		return do(f, c)
	})
}

func (f *fake) alive(context uintptr) bool {
	for _, c := range f.contexts {
		if c == context {
			return true
		}
	}
	return false
}

// own checks that a handle is alive, of the kind that freedBy frees, and
// belongs to the current context.
func (f *fake) own(h uintptr, freedBy entry, context uintptr) bool {
	x, ok := f.live[h]
	if !ok || x.freedBy != freedBy || x.context != context {
		f.wrong("%#x is not alive in this context for %v: %+v", h, freedBy, x)
		return false
	}
	return true
}

func (f *fake) make(context uintptr, freedBy entry, out *uintptr, bytes []byte) result {
	f.next += 1 << 32
	f.live[f.next] = thing{freedBy, context, bytes}
	*out = f.next
	return 0
}

// destroy returns the callback that frees one kind of object.
func destroy(e entry) func(uintptr) uintptr {
	return func(h uintptr) uintptr {
		return serveIn(e, func(f *fake, c uintptr) result {
			if !f.own(h, e, c) {
				return 400
			}
			delete(f.live, h)
			f.capturer.forget(h)
			return 0
		})
	}
}

// memory returns the bytes at a device address, nil if there are none.
func (f *fake) memory(p, n uintptr) []byte {
	for base, x := range f.live {
		if x.freedBy == cuMemFree && p >= base && p+n <= base+uintptr(len(x.bytes)) {
			return x.bytes[p-base : p-base+n]
		}
	}
	return f.mapper.memory(p, n)
}

func (f *fake) copy(dst, src []byte) result {
	if dst == nil || src == nil {
		return 1
	}
	copy(dst, src)
	return 0
}

func (f *fake) retain(out *uintptr, gpu int) result {
	if f.users[gpu]++; f.users[gpu] == 1 {
		f.next += 1 << 32
		f.contexts[gpu] = f.next
	}
	*out = f.contexts[gpu]
	return 0
}

// release ends the context with its last user; whatever is left in it is
// leaked.
func (f *fake) release(gpu int) result {
	if f.users[gpu] == 0 {
		f.wrong("context of GPU %d released too often", gpu)
		return 201
	}
	if f.users[gpu]--; f.users[gpu] > 0 {
		return 0
	}
	c := f.contexts[gpu]
	delete(f.contexts, gpu)
	for h, x := range f.live {
		if x.context == c {
			f.leaked = append(f.leaked, x)
			delete(f.live, h)
		}
	}
	return 0
}

// state returns the number of calls so far, and of live objects.
func (f *fake) state() (calls, live int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.total, len(f.live)
}

func (f *fake) failWith(fail func(e entry, n int) result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = fail
}

func (f *fake) count(e entry) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[e]
}

func (f *fake) lastLaunch() launched {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.last
	l.params = slices.Clone(l.params)
	return l
}
