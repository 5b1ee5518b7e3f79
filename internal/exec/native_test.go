package exec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/order"
)

// native is a device whose kernels are written in Go and run at once, where
// they are launched: for tests with batches that are too large for the
// interpreter, and for those that count allocations. Addresses are checked as
// the interpreter checks them.
type native struct {
	mu     sync.RWMutex
	blocks []block
	next   device.Ptr
	closed bool
	idle   bool          // launches do nothing
	late   time.Duration // more that a bucket takes
}

type block struct {
	at     device.Ptr
	memory []byte
}

func newNative() *native { return &native{next: 1 << 40} }

var errNative = errors.New("native device: misused")

func (d *native) Info() device.Info         { return device.Info{Name: "native"} }
func (d *native) FreeBytes() (int64, error) { return 1 << 34, nil }

func (d *native) Alloc(bytes int) (device.Ptr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := block{d.next, aligned(bytes)}
	d.next += device.Ptr(bytes+511) &^ 255
	d.blocks = append(d.blocks, b)
	return b.at, nil
}

func (d *native) Free(p device.Ptr) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, b := range d.blocks {
		if b.at == p {
			d.blocks = append(d.blocks[:i:i], d.blocks[i+1:]...)
			return nil
		}
	}
	return fmt.Errorf("%w: nothing at %#x to free", errNative, uint64(p))
}

// aligned returns bytes that numbers can lie in.
func aligned(bytes int) []byte { return arena.Bytes(make([]uint64, (bytes+7)/8))[:bytes] }

// has reports whether memory is part of a block.
func (b *block) has(p device.Ptr, bytes int) bool {
	return p >= b.at && p+device.Ptr(bytes) <= b.at+device.Ptr(len(b.memory))
}

// at returns memory of the device.
func (d *native) at(p device.Ptr, bytes int) []byte {
	b := d.block(p, bytes)
	return b.memory[p-b.at:][:bytes]
}

func (d *native) block(p device.Ptr, bytes int) block {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for _, b := range d.blocks {
		if b.has(p, bytes) {
			return b
		}
	}
	panic(fmt.Sprintf("native device: %d bytes at %#x are not of a block", bytes, uint64(p)))
}

func (d *native) HostAlloc(bytes int) ([]byte, error) { return aligned(bytes), nil }
func (d *native) HostFree([]byte) error               { return nil }
func (d *native) Register([]byte) error               { return nil }
func (d *native) Unregister([]byte) error             { return nil }

func (d *native) Load(string) (device.Module, error)        { return d, nil }
func (d *native) Unload() error                             { return nil }
func (d *native) Kernel(name string) (device.Kernel, error) { return &nativeKernel{name}, nil }
func (d *native) NewStream() (device.Stream, error)         { return &nativeStream{d}, nil }
func (d *native) NewEvent() (device.Event, error)           { return &nativeEvent{d: d}, nil }

func (d *native) Reserve(int64) (device.Range, error) { return nil, device.ErrUnsupported }
func (d *native) ReserveHost(int64) (device.HostRange, error) {
	return nil, device.ErrUnsupported
}
func (d *native) NewGraph(func(device.Stream) error) (device.Graph, error) {
	return nil, device.ErrUnsupported
}

func (d *native) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("%w: closed twice", errNative)
	}
	d.closed, d.blocks = true, nil
	return nil
}

type nativeKernel struct{ name string }

func (k *nativeKernel) Name() string { return k.name }

type nativeEvent struct {
	d  *native
	at time.Time
}

func (e *nativeEvent) Close() error { return nil }
func (e *nativeEvent) Synchronize() error {
	time.Sleep(e.d.late)
	return nil
}

func (e *nativeEvent) Since(earlier device.Event) (float64, error) {
	return float64(e.at.Sub(earlier.(*nativeEvent).at)) / float64(time.Millisecond), nil
}

type nativeStream struct{ d *native }

// noted makes an error of a panic: a bad address.
func noted(err *error) {
	if v := recover(); v != nil {
		*err = fmt.Errorf("%w: %v", errNative, v)
	}
}

func (s *nativeStream) CopyIn(dst device.Ptr, src []byte) (err error) {
	defer noted(&err)
	copy(s.d.at(dst, len(src)), src)
	return nil
}

func (s *nativeStream) CopyOut(dst []byte, src device.Ptr) (err error) {
	defer noted(&err)
	copy(dst, s.d.at(src, len(dst)))
	return nil
}

func (s *nativeStream) CopyDevice(dst, src device.Ptr, bytes int) (err error) {
	defer noted(&err)
	copy(s.d.at(dst, bytes), s.d.at(src, bytes))
	return nil
}

func (s *nativeStream) Fill(dst device.Ptr, value uint32, bytes int) (err error) {
	defer noted(&err)
	for i := range arena.As[uint32](s.d.at(dst, bytes)) {
		arena.As[uint32](s.d.at(dst, bytes))[i] = value
	}
	return nil
}

func (s *nativeStream) Wait(device.Event) error  { return errNative }
func (s *nativeStream) Start(device.Graph) error { return errNative }
func (s *nativeStream) Synchronize() error       { return nil }
func (s *nativeStream) Close() error             { return nil }

func (s *nativeStream) Record(e device.Event) error {
	e.(*nativeEvent).at = time.Now()
	return nil
}

func (s *nativeStream) Launch(k device.Kernel, _ device.Grid, params []byte) (err error) {
	defer noted(&err)
	if s.d.idle {
		return nil
	}
	name := k.Name()
	keys, _, _ := strings.Cut(name, "x") // entries64x32
	if strings.HasSuffix(keys, "64") {
		return nativeLaunch[uint64](s.d, name, params)
	}
	return nativeLaunch[uint32](s.d, name, params)
}

func nativeLaunch[C order.Code](d *native, name string, params []byte) error {
	switch strings.TrimRight(name, "0123456789x") {
	case "sign", "bucket", "astray":
		return nil // signs are not looked at
	case "entries":
		return nativeEntries[C](d, name, params)
	case "blockedDown":
		return nativeBlocked[C](d, params)
	case "packedRank":
		return nativePacked[C](d, params, false)
	case "packedFind":
		return nativePacked[C](d, params, true)
	case "gather":
		return nativeGather[C](d, params)
	}
	if search, ok := strings.CutPrefix(name, "sign"); ok {
		tree, signs := unsafe.Sizeof(kernel.Tree{}), unsafe.Sizeof(kernel.Signs{})
		return nativeSearch[C](d, strings.ToLower(search), slices.Concat(params[:tree], params[tree+signs:]))
	}
	return nativeSearch[C](d, name, params)
}

// unpack reads a kernel's arguments.
func unpack[P any](params []byte) (p P) {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&p)), unsafe.Sizeof(p)), params)
	return p
}

// searchArgs are the arguments of a search; bits is not there for some.
type searchArgs struct {
	tree      kernel.Tree
	keys      device.Ptr
	n, _      uint32
	out, bits device.Ptr
}

// nativeTree is a tree on the device, with the block that holds it.
type nativeTree struct {
	kernel.Tree
	d     *native
	block block
}

func (t *nativeTree) at(p device.Ptr, bytes int) []byte {
	if !t.block.has(p, bytes) {
		t.block = t.d.block(p, bytes)
	}
	return t.block.memory[p-t.block.at:][:bytes]
}

// nativeNode returns the keys of a node.
func nativeNode[C order.Code](t *nativeTree, node uint32) []C {
	return arena.As[C](t.at(t.Base+device.Ptr(node)*64, 64))
}

// nativeVal returns a value of the column.
func nativeVal[V order.Code](t *nativeTree, rank uint32) V {
	return arena.As[V](t.at(t.Vals+device.Ptr(int(rank)*width[V]()), width[V]()))[0]
}

// nativeDescend takes a query from a node to where the tree's levels end.
func nativeDescend[C order.Code](t *nativeTree, level, node uint32, key C) uint32 {
	node = min(node, t.Last[level])
	for ; level < t.Levels; level++ {
		node = min(t.Fanout*node+t.Next[level]+uint32(below(nativeNode[C](t, node), key)), t.Last[level+1])
	}
	return node
}

func below[C order.Code](keys []C, key C) (n int) {
	for _, k := range keys {
		if k < key {
			n++
		}
	}
	return n
}

// nativeSearch is all searches.
func nativeSearch[C order.Code](d *native, name string, params []byte) error {
	a := unpack[searchArgs](params)
	t, n := nativeTree{Tree: a.tree, d: d}, int(a.n)
	var starts []uint32
	if t.Start != 0 {
		starts = arena.As[uint32](d.at(t.Start, 4*n))
	}
	give := nativeResult[C](d, &t, name, &a)
	for q, key := range arena.As[C](d.at(a.keys, n*width[C]())) {
		node, level := uint32(0), uint32(0)
		if starts != nil {
			node, level = starts[q], t.From
			if uint32(q)&^31 < t.Deep {
				level++
			}
		}
		give(q, key, nativeDescend(&t, level, node, key))
	}
	return nil
}

// nativeResult gives what a search does with the node that a query came to.
func nativeResult[C order.Code](d *native, t *nativeTree, name string, a *searchArgs) func(q int, key C, node uint32) {
	n := int(a.n)
	kind := strings.TrimRight(name, "0123456789x")
	if kind == "down" || kind == "rank" || kind == "find" {
		out := arena.As[uint32](d.at(a.out, 4*n))
		return func(q int, key C, node uint32) {
			if out[q] = node; kind != "down" {
				out[q] = kernel.NotFound
				if rank, hit := nativeLeaf(t, key, node); hit || kind == "rank" {
					out[q] = rank
				}
			}
		}
	}
	bits := arena.As[uint32](d.at(a.bits, (n+31)/32*4))
	switch {
	case kind == "pairs":
		return nativeValues[C](t, arena.As[C](d.at(a.out, n*width[C]())), bits, func(rank uint32) C {
			return nativeNode[C](t, t.Leaves+rank/t.LeafKeys)[uint32(64/width[C]()/2)+rank%t.LeafKeys]
		})
	case strings.HasSuffix(name, "x64"):
		return nativeValues[C](t, arena.As[uint64](d.at(a.out, n*8)), bits, func(rank uint32) uint64 { return nativeVal[uint64](t, rank) })
	}
	return nativeValues[C](t, arena.As[uint32](d.at(a.out, n*4)), bits, func(rank uint32) uint32 { return nativeVal[uint32](t, rank) })
}

// nativeLeaf returns the rank of a key in its leaf, and whether it is there.
func nativeLeaf[C order.Code](t *nativeTree, key C, node uint32) (rank uint32, hit bool) {
	leaf := nativeNode[C](t, node)[:t.LeafKeys]
	slot := below(leaf, key)
	return min((node-t.Leaves)*t.LeafKeys+uint32(slot), t.Count), slot < len(leaf) && leaf[slot] == key
}

// nativeValues sets values and bits.
func nativeValues[C, V order.Code](t *nativeTree, out []V, bits []uint32, val func(rank uint32) V) func(int, C, uint32) {
	clear(bits)
	return func(q int, key C, node uint32) {
		out[q] = 0
		if rank, hit := nativeLeaf(t, key, node); hit {
			out[q] = val(rank)
			bits[q/32] |= 1 << (q % 32)
		}
	}
}

// entryArgs are the arguments of a copy of entries.
type entryArgs struct {
	tree           kernel.Tree
	first, offsets device.Ptr
	ranges, n      uint32
	keys, vals     device.Ptr
}

func nativeEntries[C order.Code](d *native, name string, params []byte) error {
	a := unpack[entryArgs](params)
	t, runs, size := nativeTree{Tree: a.tree, d: d}, int(a.ranges), 4
	if strings.HasSuffix(name, "x64") {
		size = 8
	}
	first, offsets := arena.As[uint32](d.at(a.first, 4*runs)), arena.As[uint32](d.at(a.offsets, 4*runs))
	keys := arena.As[C](d.at(a.keys, int(a.n)*width[C]()))
	run := 0
	for e := range a.n {
		for run+1 < runs && offsets[run+1] <= e {
			run++
		}
		rank := first[run] + e - offsets[run]
		leaf := arena.Bytes(nativeNode[C](&t, t.Leaves+rank/t.LeafKeys))
		slot := int(rank % t.LeafKeys)
		keys[e] = arena.As[C](leaf)[slot]
		if a.vals == 0 {
			continue
		}
		dst := d.at(a.vals+device.Ptr(int(e)*size), size)
		if t.Vals == 0 {
			copy(dst, leaf[32+slot*size:])
		} else {
			copy(dst, t.at(t.Vals+device.Ptr(int(rank)*size), size))
		}
	}
	return nil
}
