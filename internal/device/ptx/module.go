package ptx

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pando-index/pando/internal/device"
)

// module is loaded code with its variables.
type module struct {
	dev     *Device
	source  []string
	kernels map[string]*kernel
	consts  []byte       // contents of .const memory
	globals []device.Ptr // allocations of its .global variables
	gone    bool
}

// Check returns the error with which a PTX text would be rejected, which names
// the line, or nil.
func Check(ptx string) error {
	_, err := New(Memory(1<<40), lazily).Load(ptx)
	return err
}

// Load parses and decodes a PTX text and allocates its variables. Anything
// unknown is an error here, with its line, and never at run time.
func (d *Device) Load(ptx string) (device.Module, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return nil, err
	}
	m := &module{dev: d}
	if err := m.build(ptx); err != nil {
		m.release()
		return nil, err
	}
	return m, nil
}

// decoded is a text with its kernels. Modules share it, and change nothing of it.
type decoded struct {
	*text
	places  map[string]place
	kernels map[string]*kernel // without a module
}

// known are texts that were loaded before and have no variables in a device's memory, so that
// they are decoded alike everywhere: tests open one device after another, and to decode
// kernels takes longer than most of them run.
var known struct {
	sync.Mutex
	texts map[string]*decoded
}

// mostKnown is how many texts there are in known; then it begins again.
const mostKnown = 64

func (m *module) build(ptx string) (err error) {
	defer catch(&err, m.line)
	known.Lock()
	is := known.texts[ptx]
	known.Unlock()
	if is == nil {
		m.source = strings.Split(ptx, "\n")
		is = &decoded{text: parse(ptx), kernels: map[string]*kernel{}}
	}
	m.source = is.source
	places, err := m.place(is.text)
	if err != nil {
		return err
	}
	m.initialise(is.text, places)
	if is.places == nil {
		is.places = places
		is.decode()
		remember(ptx, is)
	}
	m.kernels = make(map[string]*kernel, len(is.kernels))
	for name, k := range is.kernels {
		own := *k
		own.mod, own.template = m, slices.Clone(k.template) // a launch writes to it
		m.kernels[name] = &own
	}
	return nil
}

func (is *decoded) decode() {
	for _, f := range is.funcs {
		switch {
		case !f.defined:
		case f.entry:
			is.kernels[f.name] = decodeEntry(is.text, f, is.places)
		default:
			checkFunction(is.text, f, is.places)
		}
	}
	is.funcs = nil // which are large
}

// remember keeps what a text is decoded to.
func remember(ptx string, is *decoded) {
	for _, p := range is.places {
		if p.space != constant {
			return
		}
	}
	known.Lock()
	defer known.Unlock()
	if known.texts == nil || len(known.texts) == mostKnown {
		known.texts = map[string]*decoded{}
	}
	known.texts[ptx] = is
}

// place assigns every .global and .const variable its address.
func (m *module) place(t *text) (map[string]place, error) {
	places := map[string]place{}
	for _, v := range t.vars {
		switch {
		case v.space == shared:
			continue // placed when it is used
		case v.extern || v.count == 0:
			reject(v.line, "%s is not defined in this text", v.name)
		case v.space == constant:
			at := roundUp(constBase+len(m.consts), v.align)
			m.consts = append(m.consts, make([]byte, at+v.bytes()-constBase-len(m.consts))...)
			if len(m.consts) > 64<<10 {
				reject(v.line, "more than 64 KiB of constant memory")
			}
			places[v.name] = place{space: constant, addr: uint64(at)}
		default:
			p, err := m.takeGlobal(v)
			if err != nil {
				return nil, err
			}
			places[v.name] = place{space: global, addr: uint64(p)}
		}
	}
	return places, nil
}

func (m *module) takeGlobal(v *variable) (device.Ptr, error) {
	if m.dev.checkOnly {
		m.dev.heap.next += uint64(roundUp(v.bytes(), 1024))
		return device.Ptr(m.dev.heap.next), nil
	}
	a, err := m.dev.heap.alloc(v.bytes())
	if err != nil {
		return 0, err
	}
	m.globals = append(m.globals, device.Ptr(a.base))
	clear(a.data) // module variables without an initializer are zero
	return device.Ptr(a.base), nil
}

// initialise writes the initial values of variables.
func (m *module) initialise(t *text, places map[string]place) {
	for _, v := range t.vars {
		if v.init == nil {
			continue
		}
		if v.space == shared {
			reject(v.line, "%s: shared memory has no initial value", v.name)
		}
		p := places[v.name]
		data := m.bytesAt(p, v.bytes())
		for i, in := range v.init {
			var buf [8]byte
			binary.LittleEndian.PutUint64(buf[:], resolve(in, places, v.line))
			if data != nil {
				copy(data[i*v.elem:(i+1)*v.elem], buf[:])
			}
		}
	}
}

func resolve(in initial, places map[string]place, line int) uint64 {
	if in.symbol == "" {
		return in.value
	}
	p, ok := places[in.symbol]
	if !ok {
		reject(line, "%s is not known", in.symbol)
	}
	addr := p.addr + in.value
	if in.generic {
		addr += windows[p.space]
	}
	return addr
}

// bytesAt returns the contents of a variable; nil if nothing is allocated.
func (m *module) bytesAt(p place, n int) []byte {
	if p.space == constant {
		return m.consts[p.addr-constBase:][:n]
	}
	if a := m.dev.heap.find(p.addr, uint64(n)); a != nil {
		return a.data[p.addr-a.base:][:n]
	}
	return nil
}

// line returns a line of the source, trimmed, without its comment.
func (m *module) line(n int) string {
	if n < 1 || n > len(m.source) {
		return ""
	}
	s, _, _ := strings.Cut(m.source[n-1], "//")
	return strings.Join(strings.Fields(s), " ")
}

// Kernel returns an entry point by its name.
func (m *module) Kernel(name string) (device.Kernel, error) {
	k, ok := m.kernels[name]
	if !ok {
		return nil, fmt.Errorf("%w: ptx: no kernel %q", device.ErrBadKernel, name)
	}
	return k, nil
}

// Unload frees the module's variables. Its kernels can no longer be launched.
func (m *module) Unload() error {
	m.dev.mu.Lock()
	defer m.dev.mu.Unlock()
	if m.gone {
		return fmt.Errorf("%w: ptx: module unloaded twice", device.ErrBadKernel)
	}
	m.gone = true
	m.release()
	return nil
}

func (m *module) release() {
	for _, p := range m.globals {
		_ = m.dev.heap.free(uint64(p)) // already gone if the device was closed
	}
	m.globals = nil
}
