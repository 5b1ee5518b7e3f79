package vector

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/chunked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/simd"
)

// bitsOfValues is values by their bits, as a source.
type bitsOfValues struct {
	kind simd.NumberKind
	bits []uint64
}

func (s bitsOfValues) Pieces() int { return Pieces(len(s.bits)) }

func (s bitsOfValues) Read(piece int, r *Reader) {
	for _, b := range s.bits[piece*Piece : min((piece+1)*Piece, len(s.bits))] {
		r.Take(unsafe.Pointer(&b), 1) // little-endian: its lower half is a value of 4 bytes
	}
}

// draw returns values of a kind: any, and some that are odd.
func draw(k simd.NumberKind, rng *rand.Rand, n int) []uint64 {
	bits := make([]uint64, n)
	odd := rng.IntN(4) == 0
	for i := range bits {
		bits[i] = rng.Uint64()
		if k.IsFloat() { // so that additions are rounded
			bits[i] = math.Float64bits(rng.NormFloat64() * math.Exp(10*rng.NormFloat64()))
		}
		if odd && rng.IntN(8) == 0 {
			bits[i] = []uint64{0, 1 << 63, math.MaxUint64, math.MaxInt64, math.Float64bits(math.Inf(1)), math.Float64bits(math.Inf(-1)), math.Float64bits(math.NaN())}[rng.IntN(7)]
		}
		if k == simd.Float32 {
			bits[i] = uint64(math.Float32bits(float32(math.Float64frombits(bits[i]))))
		}
		if k.Bytes() == 4 {
			bits[i] = uint64(uint32(bits[i]))
		}
	}
	return bits
}

// bytesOf returns values as they lie in places of so many bytes.
func bytesOf(bits []uint64, width int) []byte {
	if width == 8 {
		return arena.Bytes(bits)
	}
	narrow := make([]uint32, len(bits))
	for i, b := range bits {
		narrow[i] = uint32(b)
	}
	return arena.Bytes(narrow)
}

// holding is values on a device in some layout.
type holding struct {
	sums, bins kernel.Source
	stream     device.Stream
	launch     Launch
	close      func() error
}

// put copies bytes to a device.
func put(d device.Device, st device.Stream, b []byte) (device.Ptr, error) {
	at, err := d.Alloc(max(4, len(b)))
	if err == nil && len(b) > 0 {
		err = errors.Join(st.CopyIn(at, b), st.Synchronize())
	}
	return at, err
}

// inColumn puts values one behind the other.
func inColumn(d device.Device, k simd.NumberKind, bits []uint64, _ *rand.Rand) (*holding, error) {
	st, err := d.NewStream()
	if err != nil {
		return nil, err
	}
	at, err := put(d, st, bytesOf(bits, k.Bytes()))
	params := &kernel.Params{}
	return &holding{kernel.FrozenVectors, kernel.FrozenHistograms, st, func(set *kernel.Set, v *kernel.Vectors) error {
		return set.Column(st, params, v, at)
	}, func() error { return errors.Join(d.Free(at), st.Close()) }}, err
}

// inPairs puts values beside their keys.
func inPairs(d device.Device, k simd.NumberKind, bits []uint64, rng *rand.Rand) (*holding, error) {
	if k.Bytes() == 4 {
		return pairsOf[uint32](d, bits)
	}
	return pairsOf[uint64](d, bits)
}

func pairsOf[C simd.Code](d device.Device, bits []uint64) (*holding, error) {
	keys := make([]C, len(bits))
	for i := range keys {
		keys[i] = C(i) * 3
	}
	vals := bytesOf(bits, int(unsafe.Sizeof(C(0))))
	tree, err := implicit.Build(layout.Source[C]{Len: len(keys), Codes: keys, Vals: unsafe.Pointer(unsafe.SliceData(vals))},
		implicit.Config{Leaves: implicit.Pairs, ValSize: int(unsafe.Sizeof(C(0))), Pages: arena.Small, Workers: 1})
	if err != nil {
		return nil, err
	}
	defer tree.Release()
	st, err := d.NewStream()
	if err != nil {
		return nil, err
	}
	all, _ := tree.Memory()
	at, err := put(d, st, all)
	if err != nil {
		return nil, err
	}
	there, err := kernel.NewTree(&tree.Tree, at, 0)
	params := &kernel.Params{}
	return &holding{kernel.FrozenVectors, kernel.FrozenHistograms, st, func(set *kernel.Set, v *kernel.Vectors) error {
		return set.PairValues(st, params, v, &there)
	}, func() error { return errors.Join(d.Free(at), st.Close()) }}, err
}

// inChunks puts values into the leaves of a tree that changes.
func inChunks(d device.Device, k simd.NumberKind, bits []uint64, rng *rand.Rand) (*holding, error) {
	if k.Bytes() == 4 && rng.IntN(2) == 0 {
		return chunksOf[uint32](d, bits, rng)
	}
	return chunksOf[uint64](d, bits, rng)
}

// chunksOf loads a tree, or fills it in several batches, so that its leaves have
// any number of entries, and removes some others again.
func chunksOf[C simd.Code](d device.Device, bits []uint64, rng *rand.Rand) (*holding, error) {
	t, err := chunked.New[C](d, chunked.Options{Room: 16<<20 + 128*int64(len(bits))})
	if err != nil {
		return nil, err
	}
	batches := [][]int{nil}
	if rng.IntN(2) == 0 {
		t.SetFlat(-1)
		batches = make([][]int, 3)
	}
	for i := range bits {
		b := rng.IntN(len(batches))
		batches[b] = append(batches[b], i)
	}
	extra := rng.IntN(2) == 0
	apply := func(kind op.Kind, keys []C, vals []C) error {
		if len(keys) == 0 {
			return nil
		}
		ks, err := put(d, t.Stream(), arena.Bytes(keys))
		if err != nil {
			return err
		}
		vs, err := put(d, t.Stream(), arena.Bytes(vals))
		if err != nil {
			return err
		}
		return errors.Join(t.Apply(&chunked.Ops{N: len(keys), Keys: ks, Vals: vs, Kind: kind, Sorted: true}), t.Wait(), d.Free(ks), d.Free(vs))
	}
	for _, b := range batches {
		var keys, vals, gone []C
		for _, i := range b {
			keys, vals = append(keys, C(i)*3), append(vals, C(bits[i]))
			if extra {
				keys, vals, gone = append(keys, C(i)*3+1), append(vals, C(rng.Uint64())), append(gone, C(i)*3+1)
			}
		}
		if err := errors.Join(apply(op.Set, keys, vals), apply(op.Delete, gone, gone)); err != nil {
			return nil, err
		}
	}
	if t.Len() != len(bits) {
		return nil, fmt.Errorf("a tree of %d entries, want %d", t.Len(), len(bits))
	}
	return &holding{kernel.ChunkedVectors, kernel.ChunkedHistograms, t.Stream(), t.Vectors, t.Close}, nil
}

// drawRanges returns ranges of n entries, and all of them first.
func drawRanges(rng *rand.Rand, n int) []Range {
	ranges := []Range{{0, n}, {n, 0}, {0, 0}}
	for range 1 + rng.IntN(6) {
		first := rng.IntN(n + 1)
		ranges = append(ranges, Range{first, rng.IntN(n - first + 1)}, Range{min(first, max(0, n-1)), min(1, n)}, Range{first, min(40, n-first)})
	}
	return ranges
}

// sumsOn compares sums on a device with those of the CPU, for values of one kind
// in one layout.
func sumsOn(d device.Device, k simd.NumberKind, name string, hold func(device.Device, simd.NumberKind, []uint64, *rand.Rand) (*holding, error), n int, rng *rand.Rand) (err error) {
	bits := draw(k, rng, n)
	h, err := hold(d, k, bits, rng)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	on := &OnDevice{Device: d, Stream: h.stream, Sums: h.sums, Histograms: h.bins, InLeaves: rng.IntN(2) == 0,
		most: []int{0, 1, 2, 5, Block}[rng.IntN(5)], unit: []int{0, Block + 3, 3 * Block}[rng.IntN(3)]}
	if n <= 20_000 && rng.IntN(4) == 0 { // many units of few integers, which are joined
		on.most, on.unit = 0, 7
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	ranges := drawRanges(rng, n)
	t := Type{k, k.Bytes()}
	out := make([]Summary, len(ranges))
	if err := on.Sum(t, ranges, h.launch, out); err != nil {
		return err
	}
	for i, r := range ranges {
		want := Summarize(bitsOfValues{k, bits[r.First : r.First+r.N]}, t, 1)
		if !sameSummaries(out[i], want) {
			return fmt.Errorf("%s, kind %d, %d of %d entries from %d on, %d units of %d: %+v, want %+v", name, k, r.N, n, r.First, on.most, on.unit, out[i], want)
		}
		one := make([]Summary, 1)
		if err := on.Sum(t, ranges[i:i+1], h.launch, one); err != nil {
			return err
		}
		if !sameSummaries(one[0], want) {
			return fmt.Errorf("%s, kind %d, %d of %d entries from %d on by themselves, %d units of %d: %+v, want %+v", name, k, r.N, n, r.First, on.most, on.unit, one[0], want)
		}
	}
	return binsOn(on, t, name, bits, h.launch, ranges[rng.IntN(len(ranges))], rng)
}

// binsOn compares a histogram.
func binsOn(on *OnDevice, t Type, name string, bits []uint64, launch Launch, r Range, rng *rand.Rand) error {
	var bounds []uint64
	for _, b := range draw(t.NumberKind, rng, []int{0, 1, 2, 7, 40, kernel.MaxBounds}[rng.IntN(6)]) {
		if len(bits) > 0 && rng.IntN(2) == 0 {
			b = bits[rng.IntN(len(bits))]
		}
		if !isNaN(t.NumberKind, b) {
			bounds = append(bounds, b)
		}
	}
	slices.SortFunc(bounds, func(a, b uint64) int {
		return cmp.Compare(simd.Ordered(t.NumberKind, a), simd.Ordered(t.NumberKind, b))
	})
	got, want := make([]int, len(bounds)+1), make([]int, len(bounds)+1)
	if err := on.Histogram(t, r, bounds, launch, got); err != nil {
		return err
	}
	Histogram(bitsOfValues{t.NumberKind, bits[r.First : r.First+r.N]}, t, bounds, want, 1)
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s, kind %d, %d entries from %d on, %d bounds: %v, want %v", name, t.NumberKind, r.N, r.First, len(bounds), got, want)
	}
	return nil
}

// sameSummaries reports whether two are the same, NaNs too.
func sameSummaries(a, b Summary) bool {
	same := math.Float64bits(a.Sum) == math.Float64bits(b.Sum) && math.Float64bits(a.Mean) == math.Float64bits(b.Mean)
	a.Sum, a.Mean, b.Sum, b.Mean = 0, 0, 0, 0
	return same && a == b
}

var holdings = []struct {
	name string
	hold func(device.Device, simd.NumberKind, []uint64, *rand.Rand) (*holding, error)
}{{"a column", inColumn}, {"pairs", inPairs}, {"a chunked tree", inChunks}}

var deviceSizes = []int{0, 1, 2, 27, 28, 29, 31, 32, 33, 63, 65, 300, 1023, 1024, 1025, 2100, 4096, 5000, 8000, 20_000}

// A device comes to the same bits as the CPU, whatever the layout, kind and range.
// PANDO_SEEDS says how many cases are tried.
func TestSumsOnDevice(t *testing.T) {
	first := seed.Of(t)
	for i := range uint64(seed.Count(72)) {
		rng := rand.New(rand.NewPCG(first+i, 2))
		h, k := holdings[int(i)%3], simd.NumberKind(i/3%6)
		d := ptx.New(ptx.Seed(first+i), ptx.Memory(64<<20), ptx.RaceCheck(i%4 == 0))
		if err := sumsOn(d, k, h.name, h.hold, deviceSizes[rng.IntN(len(deviceSizes))], rng); err != nil {
			t.Fatalf("seed %d: %v", first+i, err)
		}
		if err := d.Close(); err != nil {
			t.Fatalf("seed %d: %v", first+i, err)
		}
	}
}

// The same on the machine's GPU, with more values: so many that parts are joined.
func TestSumsOnGPU(t *testing.T) {
	d, err := cuda.Open(0)
	if err != nil {
		t.Skip("no GPU: ", err)
	}
	defer d.Close()
	first := seed.Of(t)
	for i := range uint64(seed.Count(90)) {
		rng := rand.New(rand.NewPCG(first+i, 2))
		h, k := holdings[int(i)%3], simd.NumberKind(i/3%6)
		n := deviceSizes[rng.IntN(len(deviceSizes))]
		if i%5 == 0 { // in turn each layout and kind
			n = 1<<20 + rng.IntN(1<<19)
		}
		if err := sumsOn(d, k, h.name, h.hold, n, rng); err != nil {
			t.Fatalf("seed %d: %v", first+i, err)
		}
	}
}

// So many values that parts are joined, and in several launches.
func TestManyUnitsOnDevice(t *testing.T) {
	if !seed.Long() {
		t.Skip("takes long")
	}
	rng := seed.Rand(t)
	const n = Block*Block + 3*Block + 7
	for _, k := range []simd.NumberKind{simd.Float32, simd.Int64} {
		bits := draw(k, rng, n)
		d := ptx.New(ptx.Seed(rng.Uint64()), ptx.RaceCheck(false))
		h, err := inColumn(d, k, bits, rng)
		if err != nil {
			t.Fatal(err)
		}
		on := &OnDevice{Device: d, Stream: h.stream, Sums: h.sums, Histograms: h.bins, most: 1024}
		out, typ := make([]Summary, 1), Type{k, k.Bytes()}
		if err := on.Sum(typ, []Range{{0, n}}, h.launch, out); err != nil {
			t.Fatal(err)
		}
		if want := Summarize(bitsOfValues{k, bits}, typ, 1); !sameSummaries(out[0], want) {
			t.Errorf("kind %d: %+v, want %+v", k, out[0], want)
		}
		d.Close()
	}
}

// Units in leaves are as many as warps can be at once, or a multiple of it, so that
// all of them end at about one time; none is too large or too small.
func TestLeafUnits(t *testing.T) {
	rng := seed.Rand(t)
	for range 1000 {
		n, processors := rng.IntN(1<<(1+rng.IntN(30))), rng.IntN(200)
		slots, unit := 32*max(1, processors), leafUnit(n, processors)
		units := (n + unit - 1) / unit
		turns := (units + slots - 1) / slots
		even := unit == Block || turns == 1 || units > slots*turns-slots/8-turns*32
		if unit < Block || unit > fullLeafUnit || !even {
			t.Errorf("%d values, %d processors: %d units of %d, in %d turns", n, processors, units, unit, turns)
		}
	}
	if got := leafUnit(64<<20, 132); got < 15<<10 || got > 16<<10 {
		t.Errorf("64M values on an H200: units of %d", got)
	}
}
