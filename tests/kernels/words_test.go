package kernels

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/words"
)

// randomWords returns n sorted strings of one of a few kinds.
func randomWords(n int, rng *rand.Rand) []string {
	keys := make([]string, n)
	kind := rng.IntN(4)
	for i := range keys {
		switch kind {
		case 0:
			keys[i] = fmt.Sprintf("%016x", rng.Uint64())
		case 1:
			keys[i] = fmt.Sprintf("https://host%d.example/%d/%d", rng.IntN(5), rng.IntN(9), rng.IntN(300))
		case 2:
			keys[i] = strings.Repeat("ab", rng.IntN(60))
		case 3:
			keys[i] = string([]byte{byte(rng.IntN(2)), byte(rng.IntN(3)), byte(rng.Uint32())}[:rng.IntN(4)])
		}
	}
	slices.Sort(keys)
	return keys
}

// wordsFind runs the kernel and returns its results as they lie in memory.
func wordsFind(t *testing.T, d device.Device, x *words.Tree, asked []string, withStrings bool) []byte {
	t.Helper()
	image, err := x.StringImage()
	must(t, err)
	set, err := kernel.LoadOnly(d, image.Resident.Kernels())
	must(t, err)
	st, err := d.NewStream()
	must(t, err)
	var mem []device.Ptr
	put := func(b []byte) device.Ptr {
		p, err := d.Alloc(max(len(b), 4))
		must(t, err)
		must(t, st.CopyIn(p, b))
		mem = append(mem, p)
		return p
	}
	var parts []device.Ptr
	for _, part := range image.Parts {
		parts = append(parts, put(part))
	}
	full := device.Ptr(0)
	if withStrings {
		full = put(image.Strings)
	}
	must(t, image.Resident.Place(parts, full, 100))
	offsets, all := []uint32{0}, []byte(nil)
	for _, k := range asked {
		all = append(all, k...)
		offsets = append(offsets, uint32(len(all)))
	}
	out := make([]byte, 4*len(asked))
	res := put(out)
	var params kernel.Params
	must(t, image.Resident.Search(set, st, &params, put(all), put(arena.Bytes(offsets)), len(asked), res))
	must(t, st.CopyOut(out, res))
	must(t, st.Synchronize())
	must(t, st.Close())
	for _, p := range mem {
		must(t, d.Free(p))
	}
	must(t, set.Unload())
	return out
}

// What the kernel says of a string is so, and where it says nothing the CPU
// comes to the same from there.
func TestWordsFind(t *testing.T) {
	seeds := 200
	if !seed.Long() {
		seeds = 20
	}
	onEach(t, seeds, func(t *testing.T, d device.Device, rng *rand.Rand) {
		keys := randomWords([]int{0, 1, 16, 255, 256, 257, 900}[rng.IntN(7)], rng)
		x, err := words.Build(keys, nil, words.Config{Workers: 1})
		must(t, err)
		defer x.Release()
		asked := append(randomWords(20, rng), "", strings.Repeat("ab", 60))
		for range min(20, len(keys)) {
			asked = append(asked, keys[rng.IntN(len(keys))])
		}
		want, got := make([]int, len(asked)), make([]int, len(asked))
		x.Find(asked, want)
		out := arena.As[uint32](wordsFind(t, d, x, asked, rng.IntN(3) > 0))
		for i, v := range out {
			got[i] = int(v &^ (kernel.WordsEqual | kernel.WordsUnsure))
			switch {
			case v&kernel.WordsEqual != 0 && got[i] != want[i]:
				t.Fatalf("%q is said to be entry %d, it is %d", asked[i], got[i], want[i])
			case v&(kernel.WordsEqual|kernel.WordsUnsure) == 0 && want[i] >= 0 && !x.Loose():
				t.Fatalf("%q is said not to be there, it is entry %d", asked[i], want[i])
			}
		}
		x.Confirm(asked, got)
		if !slices.Equal(got, want) {
			t.Fatalf("%q: the CPU goes on to %d, want %d", asked, got, want)
		}
	})
}

func TestWordsFindGivesTheSameBytes(t *testing.T) {
	gpu, err := cuda.Open(0)
	if err != nil {
		t.Skip(err)
	}
	defer gpu.Close()
	rng := seed.Rand(t)
	for range 20 {
		keys := randomWords(1+rng.IntN(1500), rng)
		x, err := words.Build(keys, nil, words.Config{Workers: 1})
		must(t, err)
		asked := append(randomWords(100, rng), keys[:len(keys)/3]...)
		interpreter := ptx.New(ptx.Seed(rng.Uint64()), ptx.Memory(64<<20))
		a, b := wordsFind(t, interpreter, x, asked, true), wordsFind(t, gpu, x, asked, true)
		if !bytes.Equal(a, b) {
			t.Fatalf("%d strings: interpreter and GPU differ", len(keys))
		}
		must(t, interpreter.Close())
		x.Release()
	}
}
