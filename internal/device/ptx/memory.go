package ptx

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/pando-index/pando/internal/device"
)

// The addresses of memory. In each space but global they start above 0, so
// that a null pointer of any space is out of bounds; in generic addressing,
// each space is moved to a window of its own.
const (
	sharedBase = 1024
	localBase  = 1024
	constBase  = 1024
	paramBase  = 512

	windowBits = 24
	globalBase = 1 << 40 // global addresses are generic ones; all windows lie below
)

// Limits of a launch, those of compute capability 9.0.
const (
	warpSize   = 32
	processors = 8 // an arbitrary number
	maxThreads = 1024
	maxShared  = 227 << 10
	maxParams  = 4 << 10
	maxLocal   = 512 << 10
	maxSlots   = 1 << 16
	maxCode    = 1 << 20
)

// windows holds what cvta adds to an address of each space.
var windows = [...]uint64{
	generic: 0, global: 0, shared: 1 << windowBits, local: 2 << windowBits,
	constant: 3 << windowBits, param: 4 << windowBits,
}

// window returns the space of a generic address, and the address in that
// space.
func window(addr uint64) (space, uint64) {
	if addr >= globalBase {
		return global, addr
	}
	offset := addr & (1<<windowBits - 1)
	switch addr >> windowBits {
	case 1:
		return shared, offset
	case 2:
		return local, offset
	case 3:
		return constant, offset
	case 4:
		return param, offset
	}
	return generic, addr // in no window
}

// allocation is a live piece of global memory.
type allocation struct {
	base   uint64
	data   []byte
	room   uint64 // addresses of a range, which data may grow to; 0 if it cannot
	onHost bool   // memory of the host that kernels use
	shadow shadow
}

// heap is the global memory of a device. Addresses are never reused, and a gap
// follows every allocation, so that a stray or stale pointer is always
// detected.
type heap struct {
	live  []*allocation // sorted by address
	freed []span        // the latest ones, for better messages
	next  uint64
	used  int64
	limit int64
	count uint64
	seed  uint64
}

type span struct{ base, size uint64 }

const (
	allocAlign  = 256
	allocGap    = 4096
	keepFreed   = 4096
	noiseStride = 0x9e3779b97f4a7c15
)

func (h *heap) alloc(bytes int) (*allocation, error) {
	if bytes <= 0 {
		return nil, fmt.Errorf("%w: allocation of %d bytes", device.ErrLaunchFailed, bytes)
	}
	if int64(bytes) > h.limit-h.used {
		return nil, fmt.Errorf("%w: %d bytes asked for, %d of %d left", device.ErrOutOfMemory, bytes, h.limit-h.used, h.limit)
	}
	a := h.place(uint64(bytes))
	a.data = make([]byte, bytes)
	noisy(a.data, h.seed+h.count)
	h.used += int64(bytes)
	return a, nil
}

// place returns a new allocation, without its data, at addresses for the given
// bytes.
func (h *heap) place(bytes uint64) *allocation {
	h.count++
	a := &allocation{base: h.next}
	gap := allocGap + mix(h.seed^h.count)%16*allocAlign // so that nothing lies at a fixed distance
	h.next = (h.next + bytes + gap + allocAlign - 1) &^ (allocAlign - 1)
	h.live = append(h.live, a)
	return a
}

// free ends what alloc returned. A range has its own way to be freed.
func (h *heap) free(base uint64) error {
	i := sort.Search(len(h.live), func(i int) bool { return h.live[i].base >= base })
	if i == len(h.live) || h.live[i].base != base || h.live[i].room != 0 {
		return fmt.Errorf("%w: free of %#x, which is no live allocation", device.ErrLaunchFailed, base)
	}
	h.remove(h.live[i])
	return nil
}

// remove ends a live allocation, or a range.
func (h *heap) remove(a *allocation) {
	i := sort.Search(len(h.live), func(i int) bool { return h.live[i].base >= a.base })
	h.live = append(h.live[:i], h.live[i+1:]...)
	if !a.onHost {
		h.used -= int64(len(a.data))
	}
	h.freed = append(h.freed, span{a.base, max(uint64(len(a.data)), a.room)})
	if len(h.freed) > keepFreed {
		h.freed = h.freed[1:]
	}
}

// find returns the allocation that holds all n bytes at addr, or nil.
func (h *heap) find(addr, n uint64) *allocation {
	i := sort.Search(len(h.live), func(i int) bool { return h.live[i].base > addr }) - 1
	if i < 0 || !h.live[i].holds(addr, n) {
		return nil
	}
	return h.live[i]
}

func (a *allocation) holds(addr, n uint64) bool {
	off, size := addr-a.base, uint64(len(a.data))
	return off < size && size-off >= n
}

func (h *heap) wasFreed(addr uint64) bool {
	for _, s := range h.freed {
		if addr-s.base < s.size {
			return true
		}
	}
	return false
}

// at returns the memory for a copy or fill from the host.
func (h *heap) at(p device.Ptr, n int) ([]byte, error) {
	addr := uint64(p)
	if n == 0 {
		return nil, nil
	}
	if a := h.find(addr, uint64(n)); a != nil {
		off := addr - a.base
		return a.data[off : off+uint64(n)], nil
	}
	why := "outside every allocation"
	if h.wasFreed(addr) {
		why = "freed before"
	} else if r := h.reserved(addr, uint64(n)); r != nil {
		why = r.short()
	}
	return nil, fmt.Errorf("%w: copy of %d bytes at %#x: %s", device.ErrLaunchFailed, n, addr, why)
}

// mix is a step of the splitmix64 generator.
func mix(x uint64) uint64 {
	x += noiseStride
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// noisy fills fresh memory with a pattern that depends on a seed: undefined
// content that differs from run to run, so that no test can rely on zeros.
func noisy(b []byte, seed uint64) {
	x := mix(seed)
	for ; len(b) >= 8; b = b[8:] {
		x += noiseStride
		binary.LittleEndian.PutUint64(b, x^x>>29)
	}
	for i := range b {
		b[i] = byte(x >> (8 * i))
	}
}

// at returns the memory of an access by a thread, after checking it for
// bounds, alignment and, if enabled, races. It returns nil after a fault.
func (m *machine) at(t *thread, in *inst, addr uint64, write bool) []byte {
	n := uint64(in.bytes)
	if addr&(n-1) != 0 {
		m.memoryFault(Misaligned, t, in, in.space, addr, "")
		return nil
	}
	sp := in.space
	if sp == generic {
		sp, addr = window(addr)
	}
	switch sp {
	case global:
		return m.globalAt(t, in, addr, n, write)
	case shared:
		off := addr - sharedBase
		if size := uint64(len(t.block.shared)); off < size && size-off >= n {
			if m.races && !m.touch(t, in, &t.block.shadow, off, n, write) {
				return nil
			}
			return t.block.shared[off : off+n]
		}
	case local:
		if b := within(t.local, addr-localBase, n); b != nil && in.op != opAtom {
			return b
		}
	case constant:
		if b := within(m.k.mod.consts, addr-constBase, n); b != nil {
			return m.readOnly(t, in, sp, addr, b, write)
		}
	case param:
		if b := within(m.params, addr-paramBase, n); b != nil {
			return m.readOnly(t, in, sp, addr, b, write)
		}
	}
	m.memoryFault(OutOfBounds, t, in, sp, addr, "outside "+sp.String()+" memory")
	return nil
}

func within(b []byte, off, n uint64) []byte {
	if size := uint64(len(b)); off < size && size-off >= n {
		return b[off : off+n]
	}
	return nil
}

func (m *machine) readOnly(t *thread, in *inst, sp space, addr uint64, b []byte, write bool) []byte {
	if write {
		m.memoryFault(ReadOnly, t, in, sp, addr, "")
		return nil
	}
	return b
}

// globalAt looks first where this instruction found its memory last time.
func (m *machine) globalAt(t *thread, in *inst, addr, n uint64, write bool) []byte {
	a := m.near[in.site]
	off := addr - a.base
	if size := uint64(len(a.data)); off >= size || size-off < n {
		a = m.heap.find(addr, n)
		if a == nil {
			m.lostFault(t, in, addr)
			return nil
		}
		m.near[in.site] = a
		off = addr - a.base
		if m.races && a.shadow.age != m.launches {
			a.shadow.renew(m.launches, len(a.data))
		}
	}
	if m.races && !m.touch(t, in, &a.shadow, off, n, write) {
		return nil
	}
	if m.observer != nil {
		m.saw(t, in, addr, a.data[off:off+n], write)
	}
	return a.data[off : off+n]
}

func (m *machine) lostFault(t *thread, in *inst, addr uint64) {
	if m.heap.wasFreed(addr) {
		m.memoryFault(Freed, t, in, global, addr, "")
		return
	}
	if r := m.heap.reserved(addr, uint64(in.bytes)); r != nil {
		m.memoryFault(OutOfBounds, t, in, global, addr, r.short())
		return
	}
	m.memoryFault(OutOfBounds, t, in, global, addr, "outside every allocation"+m.heap.nearest(addr))
}

// nearest describes in words where the allocation before addr ends.
func (h *heap) nearest(addr uint64) string {
	i := sort.Search(len(h.live), func(i int) bool { return h.live[i].base > addr }) - 1
	if i < 0 {
		return ""
	}
	a := h.live[i]
	return fmt.Sprintf("; the one before is %d bytes at %#x, which is %d bytes away", len(a.data), a.base, addr-a.base)
}

func (m *machine) memoryFault(k FaultKind, t *thread, in *inst, sp space, addr uint64, detail string) {
	f := m.fail(k, t, in, detail)
	f.Addr, f.Size = addr+windows[sp], int(in.bytes)
}

func (m *machine) load(t *thread, r []uint64, in *inst) bool {
	addr := r[in.a] + in.imm
	b := m.at(t, in, addr, false)
	if b == nil {
		return false
	}
	if in.order != plain && m.races {
		m.strong(t, in, addr, true, false)
	}
	if in.vec == nil {
		r[in.d] = element(b, in)
		return true
	}
	w := int(in.width)
	for i := range in.vec.n {
		r[in.vec.slot[i]] = element(b[i*w:], in)
	}
	return true
}

// element reads one value, zero- or sign-extended to its register.
func element(b []byte, in *inst) uint64 {
	var v uint64
	switch in.width {
	case 4:
		v = uint64(binary.LittleEndian.Uint32(b))
	case 8:
		return binary.LittleEndian.Uint64(b)
	case 1:
		v = uint64(b[0])
	case 2:
		v = uint64(binary.LittleEndian.Uint16(b))
	}
	if in.mode != 0 {
		shift := 64 - 8*uint(in.width)
		v = uint64(int64(v<<shift)>>shift) & maskOf(int(in.mode))
	}
	return v
}

func (m *machine) store(t *thread, r []uint64, in *inst) bool {
	addr := r[in.a] + in.imm
	b := m.at(t, in, addr, true)
	if b == nil {
		return false
	}
	if in.order != plain && m.races {
		m.strong(t, in, addr, false, true)
	}
	if in.vec == nil {
		setElement(b, in.width, r[in.b])
		return true
	}
	w := int(in.width)
	for i := range in.vec.n {
		setElement(b[i*w:], in.width, r[in.vec.slot[i]])
	}
	return true
}

func setElement(b []byte, width uint8, v uint64) {
	switch width {
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	case 8:
		binary.LittleEndian.PutUint64(b, v)
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	}
}
