// Package paths asks the same of every way that an index can be searched:
// plain Go, AVX2, AVX-512; the interpreter and a GPU where there is one, each
// with the whole index and with its inner levels alone; every layout; numbers and
// strings. One log of operations, all public methods in it, must return the same
// as a sorted slice on all of them.
package paths

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/seed"
)

// gpus are what may stand for GPU 0.
var gpus = []struct {
	name string
	open func(rng *rand.Rand) func(int) (device.Device, error)
}{
	{"interpreter", func(rng *rand.Rand) func(int) (device.Device, error) {
		return func(int) (device.Device, error) { return ptx.New(ptx.Seed(rng.Uint64()), ptx.RaceCheck(false)), nil }
	}},
	{"CUDA", func(*rand.Rand) func(int) (device.Device, error) { return cuda.Open }},
}

// sizes are those of the index, and of the batch: on the interpreter both are
// small.
const entries, questions = 1500, 220

func TestUint64(t *testing.T) {
	everyPath(t, facetest.Integers[uint64](), facetest.Uint64Values, pando.Pairs, pando.Apart, pando.Blocked, pando.Compressed, pando.Radix)
}

func TestFloat64ToUint32(t *testing.T) {
	everyPath(t, facetest.Float64s[float64](), facetest.Uint32Values, pando.Apart, pando.Blocked, pando.Compressed, pando.Radix)
}

func TestFloat32(t *testing.T) {
	everyPath(t, facetest.Float32s[float32](), facetest.Uint32Values, pando.Pairs, pando.Apart, pando.Blocked, pando.Compressed, pando.Radix)
}

func TestInt16ToString(t *testing.T) {
	everyPath(t, facetest.Integers[int16](), facetest.StringValues, pando.Apart, pando.Blocked, pando.Compressed, pando.Radix)
}

func TestStrings(t *testing.T) {
	everyPath(t, facetest.Strings[string](), facetest.Uint64Values, pando.Compressed, pando.Apart, pando.Radix)
}

func TestStringsToStrings(t *testing.T) {
	everyPath(t, facetest.Strings[facetest.Label](), facetest.StringValues, pando.Compressed, pando.Radix)
}

// everyPath runs the log over each layout on each device. The CPU's paths are
// those of facetest.CheckIndex.
func everyPath[K pando.Key, V any](t *testing.T, d facetest.Domain[K], v facetest.Values[V], layouts ...pando.LayoutKind) {
	indextest.Quiet(t)
	rng := seed.Rand(t)
	keys, vals := facetest.ManyEntries(entries, d, v, rng)
	for i, end := range d.Ends { // keys that may break something, some of them twice
		keys[3*i], keys[3*i+1] = end, d.Ends[rng.IntN(len(d.Ends))]
	}
	m := facetest.NewModel(slices.Clone(keys), slices.Clone(vals), v.Same)
	asked := facetest.Probes(m, d, questions, rng)
	for _, layout := range layouts {
		t.Run(fmt.Sprint(layout, " on CPU"), func(t *testing.T) {
			log(t, pando.CPU, keys, vals, m, asked, pando.Layout(layout), pando.Workers(1+rng.IntN(3)))
		})
		for _, gpu := range gpus {
			for _, on := range []pando.Device{pando.GPU(0), pando.Hybrid(0)} {
				t.Run(fmt.Sprint(layout, " on ", on, ", ", gpu.name), func(t *testing.T) {
					onGPU(t, gpu.open(rng))
					log(t, on, keys, vals, m, asked, pando.Layout(layout), pando.Workers(1+rng.IntN(3)))
				})
			}
		}
	}
}

// onGPU puts a device in the place of GPU 0, if there is one.
func onGPU(t *testing.T, open func(int) (device.Device, error)) {
	t.Helper()
	d, err := open(0)
	if err != nil {
		t.Skip("no GPU: ", err)
	}
	d.Close()
	indextest.UseGPU(t, open)
	indextest.Hasty(t, 64)
}

// log builds an index, asks it everything, saves it, and asks the file.
func log[K pando.Key, V any](t *testing.T, on pando.Device, keys []K, vals []V, m *facetest.Model[K, V], asked []K, opts ...pando.Option) {
	t.Helper()
	opts = append(opts, pando.On(on), codec[V]())
	ix, err := pando.Freeze(keys, vals, opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	if got := ix.Stats(); got.Device != on && !onCPUAlone[K](got) {
		t.Fatalf("on %v, not on %v: %s", got.Device, on, got.Reason)
	}
	before := ix.Stats().Device
	if err := facetest.CheckIndex(ix, m, asked); err != nil {
		t.Fatal(err)
	}
	if got := ix.Stats(); got.Device != before {
		t.Fatalf("the GPU was given up: %s", got.Reason)
	}
	path := filepath.Join(t.TempDir(), "index.pando")
	if err := ix.Save(path); err != nil {
		t.Fatal(err)
	}
	opened, err := pando.Open[K, V](path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if err := facetest.CheckIndex(opened, m, asked); err != nil {
		t.Fatalf("opened: %v", err)
	}
	var a, b bytes.Buffer
	if _, err := ix.WriteTo(&a); err != nil {
		t.Fatal(err)
	}
	if _, err := opened.WriteTo(&b); err != nil || !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Fatalf("a file that was opened is written with %d bytes, not with the same %d: %v", b.Len(), a.Len(), err)
	}
}

// onCPUAlone reports whether an index is a radix tree, or one of strings in order:
// these are searched on the CPU wherever they are asked for.
func onCPUAlone[K pando.Key](s pando.Stats) bool {
	return s.Device == pando.CPU && (s.Layout == pando.Radix || facetest.CodeBytes[K]() == 0 && s.Layout == pando.Apart)
}

// codec returns the option for values of type V, which matters for strings
// alone.
func codec[V any]() pando.Option {
	return pando.Values(
		func(dst []byte, v V) []byte { return append(dst, any(v).(string)...) },
		func(b []byte) (V, error) { return any(string(b)).(V), nil },
	)
}
