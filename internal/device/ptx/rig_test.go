package ptx

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

// numbers returns a random generator, and logs its seed.
func numbers(t testing.TB, a, b uint64) *rand.Rand {
	t.Helper()
	t.Logf("random numbers: PCG(%d, %d)", a, b)
	return rand.New(rand.NewPCG(a, b))
}

// rig is a device with a stream and the operations that tests use all the
// time.
type rig struct {
	testing.TB
	dev *Device
	s   device.Stream
}

func newRig(t testing.TB, opts ...Option) *rig {
	t.Helper()
	d := New(opts...)
	s, err := d.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, d, s}
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// load returns the kernels of a text by name.
func (r *rig) load(ptx string) func(name string) device.Kernel {
	r.Helper()
	m, err := r.dev.Load(ptx)
	r.must(err)
	return func(name string) device.Kernel {
		r.Helper()
		k, err := m.Kernel(name)
		r.must(err)
		return k
	}
}

// alloc returns device memory with this content.
func (r *rig) alloc(content []byte) device.Ptr {
	r.Helper()
	p, err := r.dev.Alloc(len(content))
	r.must(err)
	r.must(r.s.CopyIn(p, content))
	return p
}

func (r *rig) alloc32(v []uint32) device.Ptr { r.Helper(); return r.alloc(bytes32(v)) }

// read runs everything queued and returns n bytes.
func (r *rig) read(p device.Ptr, n int) []byte {
	r.Helper()
	b := make([]byte, n)
	r.must(r.s.CopyOut(b, p))
	r.must(r.s.Synchronize())
	return b
}

func (r *rig) read32(p device.Ptr, n int) []uint32 {
	r.Helper()
	b := r.read(p, 4*n)
	v := make([]uint32, n)
	for i := range v {
		v[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return v
}

// launch queues a kernel, runs the queue, and returns its error.
func (r *rig) launch(k device.Kernel, g device.Grid, args ...any) error {
	r.Helper()
	r.must(r.s.Launch(k, g, pack(args...)))
	return r.s.Synchronize()
}

func bytes32(v []uint32) []byte {
	b := make([]byte, 0, 4*len(v))
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// pack lays out parameters as PTX does, each at its own alignment.
func pack(args ...any) []byte {
	var b []byte
	for _, a := range args {
		n := binary.Size(a)
		if raw, ok := a.([]byte); ok { // a structure, aligned to 8
			n = 8
			a = raw
		}
		for len(b)%n != 0 {
			b = append(b, 0)
		}
		b, _ = binary.Append(b, binary.LittleEndian, a)
	}
	return b
}

// program returns a module around one kernel "k" with some .u64 parameters p0,
// p1... and registers of every width.
func program(params int, body string) string {
	var p []string
	for i := range params {
		p = append(p, fmt.Sprintf(".param .u64 p%d", i))
	}
	return ".version 8.0\n.target sm_90\n.address_size 64\n" +
		".visible .entry k(" + strings.Join(p, ", ") + ")\n{\n" +
		".reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<40>; .reg .b64 %d<40>; .reg .f32 %f<20>; .reg .f64 %g<20>;\n" +
		body + "\nret;\n}\n"
}

func testdata(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
