//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
)

// module is loaded code. Kernels are kept by name, so that Launch keeps what
// it knows of a kernel's shared memory in one place only.
type module struct {
	handle
	gpu     *gpu
	mu      sync.Mutex
	kernels map[string]*kernel
}

// kernel is one entry point of a module.
type kernel struct {
	module   *module
	name     string
	function uintptr

	// shared is the dynamic shared memory in bytes that a block may currently
	// have. It only grows, guarded by mu, when a launch asks for more: on some
	// GPUs, shared memory and first-level cache come out of the same store.
	mu     sync.Mutex
	shared atomic.Int64
}

// plainShared is the shared memory in bytes, static plus dynamic, that a block
// may have on every GPU without asking for more.
const plainShared = 48 << 10

// Numbers of function attributes.
const (
	funcSharedBytes     = 1
	funcMaxDynamicBytes = 8
)

// jit is where the driver's compiler writes its messages. It is on the heap,
// where it does not move, and can be freed when the load has returned.
type jit struct {
	options [4]int32
	values  [4]uintptr
	failed  [8 << 10]byte
	said    [8 << 10]byte
}

func newJIT() *jit {
	const infoBuffer, infoBytes, errorBuffer, errorBytes = 3, 4, 5, 6
	j := &jit{options: [...]int32{infoBuffer, infoBytes, errorBuffer, errorBytes}}
	// One byte less than the buffer has: the last byte terminates the text.
	j.values = [...]uintptr{
		uintptr(unsafe.Pointer(&j.said)), unsafe.Sizeof(j.said) - 1,
		uintptr(unsafe.Pointer(&j.failed)), unsafe.Sizeof(j.failed) - 1,
	}
	return j
}

// log returns what the compiler wrote, errors first.
func (j *jit) log() string {
	failed, _, _ := strings.Cut(string(j.failed[:]), "\x00")
	said, _, _ := strings.Cut(string(j.said[:]), "\x00")
	return strings.TrimSpace(strings.TrimSpace(failed) + "\n" + strings.TrimSpace(said))
}

func (g *gpu) Load(ptx string) (device.Module, error) {
	if strings.ContainsRune(ptx, 0) {
		return nil, fmt.Errorf("%w: a zero byte in the text", device.ErrBadKernel)
	}
	if _, err := g.open.hold(); err != nil {
		return nil, err
	}
	defer g.open.release()
	m := &module{gpu: g, kernels: map[string]*kernel{}}
	if err := g.compile(&m.value, ptx); err != nil {
		return nil, err
	}
	g.held.addObject(m)
	return m, nil
}

// compile loads the text and adds the compiler's messages to the error.
func (g *gpu) compile(value *uintptr, ptx string) error {
	text := append([]byte(ptx), 0)
	j := newJIT()
	err := g.context.call(cuModuleLoadDataEx,
		uintptr(unsafe.Pointer(value)), uintptr(unsafe.Pointer(&text[0])),
		uintptr(len(j.options)), uintptr(unsafe.Pointer(&j.options)), uintptr(unsafe.Pointer(&j.values)))
	if f := (*failure)(nil); errors.As(err, &f) {
		f.log = j.log()
	}
	return err
}

func (m *module) Kernel(name string) (device.Kernel, error) {
	if strings.ContainsRune(name, 0) {
		return nil, fmt.Errorf("%w: a zero byte in the name %q", device.ErrBadKernel, name)
	}
	h, err := m.hold()
	if err != nil {
		return nil, err
	}
	defer m.release()
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.kernels[name]; k != nil {
		return k, nil
	}
	k := &kernel{module: m, name: name}
	if err := k.find(h); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", name, err)
	}
	m.kernels[name] = k
	return k, nil
}

// find looks the kernel up in its module.
func (k *kernel) find(module uintptr) error {
	c := k.module.gpu.context
	text := append([]byte(k.name), 0)
	if err := c.call(cuModuleGetFunction, uintptr(unsafe.Pointer(&k.function)), module, uintptr(unsafe.Pointer(&text[0]))); err != nil {
		return err
	}
	var static int32
	if err := c.call(cuFuncGetAttribute, uintptr(unsafe.Pointer(&static)), funcSharedBytes, k.function); err != nil {
		return err
	}
	k.shared.Store(plainShared - int64(static))
	return nil
}

// Unload waits for the work on the device, since kernels may be running, and
// returns the first error of that work. Unloading again does nothing.
func (m *module) Unload() error {
	return m.destroy(func(h uintptr) error {
		defer m.gpu.held.removeObject(m)
		c := m.gpu.context
		work, unload := c.synchronize(), c.call(cuModuleUnload, h)
		if work != nil {
			return work
		}
		return unload
	})
}

// Close is Unload, for the ledger.
func (m *module) Close() error { return m.Unload() }

func (k *kernel) Name() string { return k.name }

// allow makes sure that a block may have shared bytes of dynamic shared
// memory. The module must be held.
func (k *kernel) allow(shared int) error {
	if int64(shared) <= k.shared.Load() {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if int64(shared) <= k.shared.Load() {
		return nil
	}
	err := k.module.gpu.context.call(cuFuncSetAttribute, k.function, funcMaxDynamicBytes, uintptr(shared))
	if err == nil {
		k.shared.Store(int64(shared))
	}
	return err
}

// Occupancy returns how many blocks of a kernel a multiprocessor runs at once,
// if each has the given number of threads and bytes of dynamic shared memory;
// 0 if not even one block fits. The kernel must come from this package.
func Occupancy(k device.Kernel, threads, shared int) (int, error) {
	own, ok := k.(*kernel)
	if !ok {
		return 0, fmt.Errorf("cuda: not a kernel of this package: %T", k)
	}
	if err := checkGrid(device.Grid{Blocks: 1, Threads: threads, Shared: shared}); err != nil {
		return 0, err
	}
	if _, err := own.module.hold(); err != nil {
		return 0, err
	}
	defer own.module.release()
	if err := own.allow(shared); err != nil {
		return 0, err
	}
	var blocks int32
	err := own.module.gpu.context.call(cuOccupancyMaxActiveBlocksPerMultiprocessor,
		uintptr(unsafe.Pointer(&blocks)), own.function, uintptr(threads), uintptr(shared))
	return int(blocks), err
}

// checkGrid rejects what the driver's 32-bit arguments cannot hold; the driver
// itself rejects what is too much for a GPU.
func checkGrid(g device.Grid) error {
	if g.Blocks < 1 || g.Blocks > math.MaxInt32 || g.Threads < 1 || g.Threads > math.MaxInt32 ||
		g.Shared < 0 || g.Shared > math.MaxInt32 {
		return fmt.Errorf("%w: no grid to launch: %+v", device.ErrLaunchFailed, g)
	}
	return nil
}
