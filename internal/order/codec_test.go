package order

import (
	"cmp"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

type (
	myInt     int
	myInt8    int8
	myInt16   int16
	myInt32   int32
	myInt64   int64
	myUint    uint
	myUint8   uint8
	myUint16  uint16
	myUint32  uint32
	myUint64  uint64
	myUintptr uintptr
	myFloat32 float32
	myFloat64 float64
	myString  string
)

func TestCodec(t *testing.T) {
	t.Run("int8", testKey[int8, uint32])
	t.Run("int16", testKey[int16, uint32])
	t.Run("int32", testKey[int32, uint32])
	t.Run("int64", testKey[int64, uint64])
	t.Run("uint8", testKey[uint8, uint32])
	t.Run("uint16", testKey[uint16, uint32])
	t.Run("uint32", testKey[uint32, uint32])
	t.Run("uint64", testKey[uint64, uint64])
	t.Run("float32", testKey[float32, uint32])
	t.Run("float64", testKey[float64, uint64])
	t.Run("myInt8", testKey[myInt8, uint32])
	t.Run("myInt16", testKey[myInt16, uint32])
	t.Run("myInt32", testKey[myInt32, uint32])
	t.Run("myInt64", testKey[myInt64, uint64])
	t.Run("myUint8", testKey[myUint8, uint32])
	t.Run("myUint16", testKey[myUint16, uint32])
	t.Run("myUint32", testKey[myUint32, uint32])
	t.Run("myUint64", testKey[myUint64, uint64])
	t.Run("myFloat32", testKey[myFloat32, uint32])
	t.Run("myFloat64", testKey[myFloat64, uint64])
	t.Run("int", testWord[int])
	t.Run("uint", testWord[uint])
	t.Run("uintptr", testWord[uintptr])
	t.Run("myInt", testWord[myInt])
	t.Run("myUint", testWord[myUint])
	t.Run("myUintptr", testWord[myUintptr])
}

// testWord tests a type whose width depends on the platform.
func testWord[K Key](t *testing.T) {
	if width[K]() == 32 {
		testKey[K, uint32](t)
	} else {
		testKey[K, uint64](t)
	}
}

func testKey[K Key, C Code](t *testing.T) {
	keys := sample[K](seed.Rand(t))
	c := newCodec[K, C]()
	for _, a := range keys {
		for _, b := range keys {
			if got, want := cmp.Compare(c.Encode(a), c.Encode(b)), cmp.Compare(a, b); got != want {
				t.Fatalf("codes %#x of %v and %#x of %v compare as %d, not %d", c.Encode(a), a, c.Encode(b), b, got, want)
			}
		}
		back := c.Decode(c.Encode(a))
		if cmp.Compare(back, a) != 0 || bitsOf(back) != canonical(a) {
			t.Fatalf("%v (bits %#x) came back as %v (bits %#x)", a, bitsOf(a), back, bitsOf(back))
		}
	}
	for n := range 41 {
		testSlices(t, c, keys[len(keys)-n:])
	}
	testSlices(t, c, keys)
}

// testSlices holds EncodeSlice and DecodeSlice against Encode and Decode.
func testSlices[K Key, C Code](t *testing.T, c codec[K, C], keys []K) {
	const beyond = 0x5a
	n := len(keys)
	dst := make([]C, n+1)
	dst[n] = beyond
	codes := c.EncodeSlice(dst, keys)
	if len(codes) != n || dst[n] != beyond {
		t.Fatalf("EncodeSlice of %d keys gave %d codes, and left %#x beyond", n, len(codes), dst[n])
	}
	shared := n > 0 && unsafe.Pointer(&codes[0]) == unsafe.Pointer(&keys[0])
	if n > 0 && shared != c.Identity() {
		t.Fatalf("codes share memory with keys: %v; identity: %v", shared, c.Identity())
	}
	back := make([]K, n+1)
	c.DecodeSlice(back, codes)
	for i, k := range keys {
		if codes[i] != c.Encode(k) {
			t.Fatalf("EncodeSlice gave %#x for %v, Encode %#x", codes[i], k, c.Encode(k))
		}
		if bitsOf(back[i]) != canonical(k) {
			t.Fatalf("DecodeSlice gave %v for the code of %v", back[i], k)
		}
	}
	var zero K
	if bitsOf(back[n]) != bitsOf(zero) {
		t.Fatalf("DecodeSlice of %d codes wrote beyond them", n)
	}
}

// sample returns keys that are likely to trip up a codec, and random ones.
func sample[K Key](r *rand.Rand) []K {
	var patterns []uint64
	size := uint(reflect.TypeFor[K]().Bits())
	for i := range size {
		bit := uint64(1) << i
		patterns = append(patterns, bit-1, bit, bit+1, -bit, ^bit)
	}
	if size == 32 {
		for _, f := range specials() {
			patterns = append(patterns, uint64(math.Float32bits(float32(f))))
		}
		// Around infinity, quiet and signaling NaN, the least normal number.
		for _, b := range []uint64{0x7f800000, 0x7fc00000, 0x00800000, 0x7fffffff} {
			patterns = append(patterns, b-1, b, b+1, (b-1)|1<<31, b|1<<31, (b+1)|1<<31)
		}
	}
	if size == 64 {
		for _, f := range specials() {
			patterns = append(patterns, math.Float64bits(f))
		}
		for _, b := range []uint64{0x7ff << 52, 0x7ff8 << 48, 1 << 52, 1<<63 - 1} {
			patterns = append(patterns, b-1, b, b+1, (b-1)|1<<63, b|1<<63, (b+1)|1<<63)
		}
	}
	for range 300 {
		p := r.Uint64()
		patterns = append(patterns, p, p>>r.IntN(64), p|0x7ff<<52|0x7f8<<20) // the last is NaN
	}
	keys := make([]K, len(patterns))
	for i, p := range patterns {
		keys[i] = fromBits[K](p)
	}
	return keys
}

func specials() []float64 {
	return []float64{
		0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), -math.NaN(),
		math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64,
		math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32,
	}
}

// fromBits returns the key whose bits are the low ones of p.
func fromBits[K Key](p uint64) K {
	k := reflect.New(reflect.TypeFor[K]()).Elem()
	size := k.Type().Bits()
	switch {
	case k.CanInt():
		k.SetInt(int64(p<<(64-size)) >> (64 - size))
	case k.CanUint():
		k.SetUint(p << (64 - size) >> (64 - size))
	case size == 32: // SetFloat would make a signaling NaN quiet
		*(*uint32)(k.Addr().UnsafePointer()) = uint32(p)
	default:
		*(*uint64)(k.Addr().UnsafePointer()) = p
	}
	return k.Interface().(K)
}

func bitsOf[K Key](k K) (bits uint64) {
	p := unsafe.Pointer(&k)
	switch unsafe.Sizeof(k) {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(*(*uint32)(p))
	}
	return *(*uint64)(p)
}

// canonical returns the bits that k must have after a round trip.
func canonical[K Key](k K) uint64 {
	v := reflect.ValueOf(k)
	switch {
	case !v.CanFloat():
		return bitsOf(k)
	case v.Float() == 0:
		return 0
	case math.IsNaN(v.Float()) && v.Type().Bits() == 32:
		return uint64(math.Float32bits(float32(math.NaN())))
	case math.IsNaN(v.Float()):
		return math.Float64bits(math.NaN())
	}
	return bitsOf(k)
}

// Every code of a narrow type is tried, and NaNs of all magnitudes.
func TestCodecIsExhaustiveForNarrowTypes(t *testing.T) {
	checkNarrow[int8](t)
	checkNarrow[uint8](t)
	checkNarrow[int16](t)
	checkNarrow[uint16](t)
	c := newCodec[float32, uint32]()
	for i := uint32(1); i < 1<<23; i += 1 + i%997 {
		for _, b := range []uint32{0x7f800000 | i, 0xff800000 | i} {
			if got := c.Encode(math.Float32frombits(b)); got != 0 {
				t.Fatalf("the NaN %#x has the code %#x", b, got)
			}
		}
	}
}

func checkNarrow[K Key](t *testing.T) {
	c := newCodec[K, uint32]()
	var last K
	for code := range uint32(1) << reflect.TypeFor[K]().Bits() {
		k := c.Decode(code)
		if c.Encode(k) != code || code > 0 && cmp.Compare(last, k) != -1 {
			t.Fatalf("%T: code %d decodes to %v after %v and encodes to %d", k, code, k, last, c.Encode(k))
		}
		last = k
	}
}

// Codes that no float has must decode to NaN, and not to a second -0.
func TestDecodeOfCodesWithoutKey(t *testing.T) {
	c := newCodec[float64, uint64]()
	for _, code := range []uint64{0, 1, 1<<52 - 2, 0xfff<<52 + 1, math.MaxUint64} {
		if got := math.Float64bits(c.Decode(code)); got != math.Float64bits(math.NaN()) {
			t.Errorf("code %#x decodes to bits %#x", code, got)
		}
	}
	if got := math.Float64bits(c.Decode(1<<63 - 1)); got != 0 {
		t.Errorf("the code that -0 would have decodes to bits %#x", got)
	}
}

func TestWidth(t *testing.T) {
	word := int(unsafe.Sizeof(uint(0))) * 8
	for _, w := range []struct{ got, want int }{
		{width[int8](), 32}, {width[int16](), 32}, {width[int32](), 32}, {width[int64](), 64},
		{width[uint8](), 32}, {width[uint16](), 32}, {width[uint32](), 32}, {width[uint64](), 64},
		{width[float32](), 32}, {width[float64](), 64}, {width[string](), 0}, {width[myString](), 0},
		{width[int](), word}, {width[uint](), word}, {width[uintptr](), word}, {width[myFloat64](), 64},
	} {
		if w.got != w.want {
			t.Errorf("width %d, want %d", w.got, w.want)
		}
	}
}

func TestIdentity(t *testing.T) {
	for _, i := range []struct{ got, want bool }{
		{newCodec[uint32, uint32]().Identity(), true},
		{newCodec[uint64, uint64]().Identity(), true},
		{newCodec[myUint64, uint64]().Identity(), true},
		{newCodec[uint16, uint32]().Identity(), false},
		{newCodec[int32, uint32]().Identity(), false},
		{newCodec[float64, uint64]().Identity(), false},
	} {
		if i.got != i.want {
			t.Errorf("identity %v, want %v", i.got, i.want)
		}
	}
}

func TestCodesPanicOnWrongWidth(t *testing.T) {
	mustPanic(t, func() { newCodec[int64, uint32]() })
	mustPanic(t, func() { newCodec[float32, uint64]() })
	mustPanic(t, func() { newCodec[string, uint64]() })
	mustPanic(t, func() { newCodec[myString, uint32]() })
}

func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if s, ok := recover().(string); !ok || !strings.HasPrefix(s, "order: ") {
			t.Errorf("recovered %q", s)
		}
	}()
	f()
}

func TestCodecAllocatesNothing(t *testing.T) {
	c := newCodec[float64, uint64]()
	keys, codes := make([]float64, 100), make([]uint64, 100)
	if a := testing.AllocsPerRun(100, func() {
		keys[1] = c.Decode(c.Encode(keys[0]) + 1)
		c.DecodeSlice(keys, c.EncodeSlice(codes, keys))
		sortedKeys(c, keys, 1)
	}); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

func FuzzFloatCodec(f *testing.F) {
	for _, a := range specials() {
		f.Add(math.Float64bits(a), math.Float64bits(1))
	}
	c64, c32 := newCodec[float64, uint64](), newCodec[float32, uint32]()
	f.Fuzz(func(t *testing.T, p, q uint64) {
		a, b := math.Float64frombits(p), math.Float64frombits(q)
		fuzzPair(t, c64, a, b)
		fuzzPair(t, c32, float32(a), float32(b))
		fuzzPair(t, c32, math.Float32frombits(uint32(p)), math.Float32frombits(uint32(q)))
	})
}

func fuzzPair[K Key, C Code](t *testing.T, c codec[K, C], a, b K) {
	if cmp.Compare(c.Encode(a), c.Encode(b)) != cmp.Compare(a, b) {
		t.Errorf("codes %#x of %v and %#x of %v", c.Encode(a), a, c.Encode(b), b)
	}
	if cmp.Compare(c.Decode(c.Encode(a)), a) != 0 {
		t.Errorf("%v came back as %v", a, c.Decode(c.Encode(a)))
	}
}

// A string goes through a Probe as it is, and slices of Keys are those of Go.
func TestStringsAndSpans(t *testing.T) {
	words := []myString{"", "a", "\x00", "zz"}
	k := KeysOf(words)
	if k.Bits() != 0 || k.Raw() != nil || k.Len() != len(words) {
		t.Errorf("%d strings have codes of %d bits", k.Len(), k.Bits())
	}
	for i, w := range words {
		if got := Decode[myString](k.Type, Encode(k.Type, w)); got != w || k.Strings()[i] != string(w) {
			t.Errorf("%q came back as %q", w, got)
		}
	}
	numbers := []uint32{1, 2, 3, 4, 5}
	part := KeysOf(numbers).Slice(2, 4)
	if got := Codes[uint32](part, nil); len(got) != 2 || got[0] != 3 || got[1] != 4 || len(part.Raw()) != 8 {
		t.Errorf("keys [2:4] are %v", got)
	}
	for _, span := range [][2]int{{-1, 1}, {3, 2}, {0, 6}} {
		mustPanic(t, func() { KeysOf(numbers).Slice(span[0], span[1]) })
	}
	mustPanic(t, func() { KeysOf(numbers).Strings() })
}
