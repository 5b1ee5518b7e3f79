package pandoarrow

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// scribbler is an allocator that overwrites memory when it is freed, so that
// further use of it is detected.
type scribbler struct{ memory.Allocator }

func (s scribbler) Free(b []byte) {
	for i := range b {
		b[i] = 0xee
	}
	s.Allocator.Free(b)
}

// checked returns an allocator that detects leaks and use after release.
func checked(t *testing.T) memory.Allocator {
	mem := memory.NewCheckedAllocator(scribbler{memory.NewGoAllocator()})
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

// makeArray makes an array of texts ("" is null), sliced out of a longer one.
func makeArray(t *testing.T, mem memory.Allocator, dt arrow.DataType, values []string) arrow.Array {
	t.Helper()
	b := array.NewBuilder(mem, dt)
	defer b.Release()
	b.AppendNull()
	for _, v := range values {
		if v == "" {
			b.AppendNull()
		} else if err := b.AppendValueFromString(v); err != nil {
			t.Fatal(dt, v, err)
		}
	}
	b.AppendNull()
	whole := b.NewArray()
	defer whole.Release()
	return array.NewSlice(whole, 1, int64(len(values)+1))
}

// tryType builds an index with keys and values of a type, and probes it.
func tryType[T pando.Key](t *testing.T, types ...arrow.DataType) {
	t.Helper()
	for _, dt := range types {
		t.Run(fmt.Sprintf("%T/%s", *new(T), dt), func(t *testing.T) {
			var ix *pando.Frozen[T, T]
			tryAsked(t, dt, func(keys arrow.Array) (err error) {
				ix, err = Freeze[T, T](keys, keys)
				return err
			}, func(asked arrow.Array, mem memory.Allocator) (arrow.Array, int, error) {
				return Get(ix, asked, mem)
			}, func(asked arrow.Array, mem memory.Allocator) (arrow.Array, error) {
				defer ix.Close()
				return Rank(ix, asked, mem)
			})
		})
	}
}

// tryAsked is what tryType does of an index whose types it does not know.
func tryAsked(t *testing.T, dt arrow.DataType, freeze func(keys arrow.Array) error,
	get func(arrow.Array, memory.Allocator) (arrow.Array, int, error), rankAndClose func(arrow.Array, memory.Allocator) (arrow.Array, error)) {
	mem := checked(t)
	keys := makeArray(t, mem, dt, []string{"5", "3", "4", "3"})
	err := freeze(keys)
	keys.Release()
	if err != nil {
		t.Fatal(err)
	}
	asked := makeArray(t, mem, dt, []string{"3", "", "9", "5", "4"})
	defer asked.Release()
	got, hits, err := get(asked, mem)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	if s := texts(got); hits != 3 || s != "3 null null 5 4" {
		t.Errorf("%d hits: %s", hits, s)
	}
	ranks, err := rankAndClose(asked, mem)
	if err != nil {
		t.Fatal(err)
	}
	defer ranks.Release()
	if s := texts(ranks); s != "0 null 4 3 2" {
		t.Errorf("ranks %s", s)
	}
}

// texts returns all values of an array.
func texts(a arrow.Array) string {
	var all []string
	for i := range a.Len() {
		if a.IsNull(i) {
			all = append(all, "null")
		} else {
			all = append(all, a.ValueStr(i))
		}
	}
	return strings.Join(all, " ")
}

type (
	myInt  int64
	myText string
)

// TestTypes tests every class and width of keys and values, sliced, with nulls in the
// probe; and strings in every form.
func TestTypes(t *testing.T) {
	p, s := arrow.PrimitiveTypes, arrow.BinaryTypes
	tryType[int8](t, p.Int8)
	tryType[int32](t, p.Int32)
	tryType[int64](t, p.Int64)
	tryType[myInt](t, p.Int64)
	tryType[uint64](t, p.Uint64, &arrow.DictionaryType{IndexType: p.Int8, ValueType: p.Uint64})
	tryType[float64](t, p.Float64)
	tryType[string](t, s.String, s.LargeString, s.StringView, &arrow.DictionaryType{IndexType: p.Int16, ValueType: s.String})
	tryType[myText](t, s.String)
}

// TestViews tests that the other types, which are read and written in the same ways, match
// Arrow's.
func TestViews(t *testing.T) {
	p := arrow.PrimitiveTypes
	tryView(t, p.Int16, int16(5))
	tryView(t, p.Uint8, uint8(5))
	tryView(t, p.Uint16, uint16(5))
	tryView(t, p.Uint32, uint32(5))
	tryView(t, p.Float32, float32(5))
	if strconv.IntSize == 64 {
		tryView(t, p.Int64, 5)
		tryView(t, p.Uint64, uint(5))
	} else {
		tryView(t, p.Int32, 5)
		tryView(t, p.Uint32, uint(5))
	}
}

// tryView reads an array of 5, and compares it and its type.
func tryView[T comparable](t *testing.T, dt arrow.DataType, five T) {
	t.Helper()
	a := makeArray(t, checked(t), dt, []string{"5"})
	defer a.Release()
	if v, err := view[T](a); err != nil || len(v) != 1 || v[0] != five {
		t.Errorf("%v as %T: %v, %v", dt, five, v, err)
	}
	if back, err := typeOf[T](); err != nil || back != dt {
		t.Errorf("%T as Arrow's: %v, %v; want %v", five, back, err, dt)
	}
}

// TestTimes tests that timestamps can be keys, and come back as timestamps.
func TestTimes(t *testing.T) {
	mem := checked(t)
	dt := arrow.FixedWidthTypes.Timestamp_us
	keys := makeArray(t, mem, dt, []string{"2020-01-02T00:00:00Z", "2020-01-01T00:00:00Z"})
	defer keys.Release()
	ix, err := Freeze[int64, int64](keys, keys)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	got, hits, err := GetAs(ix, keys, dt, mem)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	if hits != 2 || !array.Equal(got, keys) {
		t.Errorf("%v", got)
	}
}

// TestModel compares Get with a map, for random keys and values in chunks,
// with nulls in both columns.
func TestModel(t *testing.T) {
	r := seed.Rand(t)
	for range 200 {
		mem := memory.NewCheckedAllocator(scribbler{memory.NewGoAllocator()})
		keys, vals, model := randomColumns(r, mem)
		ix, err := FreezeValid[uint32, string](keys, vals)
		keys.Release()
		vals.Release()
		if err != nil {
			t.Fatal(err)
		}
		probe := array.NewUint32Builder(mem)
		for range r.IntN(200) {
			probe.AppendValues([]uint32{r.Uint32N(60)}, []bool{r.IntN(4) > 0})
		}
		asked := probe.NewUint32Array()
		probe.Release()
		got, hits, err := GetAs(ix, asked, arrow.BinaryTypes.LargeString, mem)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for i := range asked.Len() {
			v, ok := model[asked.Value(i)]
			ok = ok && asked.IsValid(i)
			if ok {
				want++
			}
			if got.IsValid(i) != ok || ok && got.ValueStr(i) != v {
				t.Fatalf("key %d: %s, want %s %v", asked.Value(i), got.ValueStr(i), v, ok)
			}
		}
		if hits != want {
			t.Fatalf("%d hits, want %d", hits, want)
		}
		got.Release()
		asked.Release()
		ix.Close()
		mem.AssertSize(t, 0)
	}
}

// randomColumns makes columns in chunks, and a map from each key to its first
// value, over rows without nulls.
func randomColumns(r *rand.Rand, mem memory.Allocator) (keys, vals *arrow.Chunked, model map[uint32]string) {
	model = map[uint32]string{}
	var k, v []arrow.Array
	for range r.IntN(4) {
		kb, vb := array.NewUint32Builder(mem), array.NewStringBuilder(mem)
		for range r.IntN(30) {
			key, val := r.Uint32N(50), fmt.Sprint("v", r.Uint32())
			switch r.IntN(6) {
			case 0:
				kb.AppendNull()
				vb.Append(val)
			case 1:
				kb.Append(key)
				vb.AppendNull()
			default:
				kb.Append(key)
				vb.Append(val)
				if _, old := model[key]; !old {
					model[key] = val
				}
			}
		}
		k, v = append(k, kb.NewArray()), append(v, vb.NewArray())
		kb.Release()
		vb.Release()
	}
	keys, vals = arrow.NewChunked(arrow.PrimitiveTypes.Uint32, k), arrow.NewChunked(arrow.BinaryTypes.String, v)
	for i := range k {
		k[i].Release()
		v[i].Release()
	}
	return keys, vals, model
}

// TestErrors tests that misuse results in an error that errors.Is recognizes,
// and leaks nothing.
func TestErrors(t *testing.T) {
	mem := checked(t)
	p := arrow.PrimitiveTypes
	numbers := makeArray(t, mem, p.Int64, []string{"1", "2"})
	defer numbers.Release()
	one := makeArray(t, mem, p.Int64, []string{"1"})
	defer one.Release()
	holed := makeArray(t, mem, p.Int64, []string{"1", ""})
	defer holed.Release()
	list := makeArray(t, mem, arrow.ListOf(p.Int64), []string{"[1]", "[2]"})
	defer list.Release()
	check := func(name string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	short := makeArray(t, mem, p.Int32, []string{"1", "2"})
	defer short.Release()
	whole := makeArray(t, mem, p.Uint64, []string{"1", "2"})
	defer whole.Release()
	_, err := Freeze[int32, int32](numbers, short)
	check("narrow", err, ErrType)
	_, err = Freeze[uint64, uint64](numbers, whole)
	check("sign", err, ErrType)
	_, err = Freeze[int64, [2]int64](numbers, numbers)
	check("struct", err, ErrType)
	_, err = Freeze[int64, int64](list, numbers)
	check("list", err, ErrType)
	_, err = Freeze[int64, int64](arrow.NewChunked(p.Int32, nil), numbers.(*array.Int64))
	check("lengths", err, pando.ErrLength)
	_, err = Freeze[int64, struct{}](arrow.NewChunked(p.Int32, nil), nil)
	check("no chunks", err, ErrType)
	_, err = Freeze[int64, int64](numbers, one)
	check("lengths", err, pando.ErrLength)
	_, err = Freeze[int64, int64](holed, numbers)
	check("null key", err, ErrNull)
	_, err = Freeze[int64, int64](numbers, holed)
	check("null value", err, ErrNull)

	_, err = Freeze[int64, float64](holed, numbers)
	check("null key and wrong values", err, ErrType)
	_, err = FreezeValid[int64, float64](holed, numbers)
	check("null key and wrong values", err, ErrType)
	_, err = Freeze[int64, int64](holed, list)
	check("null key and lists", err, ErrType)

	ix, err := Freeze[int64, bool](numbers, makeBools(t, mem))
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	_, _, err = Get(ix, list, mem)
	check("probe", err, ErrType)
	_, err = Rank(ix, list, mem)
	check("rank", err, ErrType)
	_, _, err = GetAs(ix, numbers, p.Int64, mem)
	check("result", err, ErrType)
	got, hits, err := Get(ix, numbers, nil)
	if err != nil || hits != 2 || texts(got) != "true false" {
		t.Errorf("booleans: %v %v", got, err)
	}
	got.Release()
}

func makeBools(t *testing.T, mem memory.Allocator) arrow.Array {
	a := makeArray(t, mem, arrow.FixedWidthTypes.Boolean, []string{"true", "false"})
	t.Cleanup(a.Release)
	return a
}

// TestEmpty tests no rows, no keys, and values that take no memory.
func TestEmpty(t *testing.T) {
	mem := checked(t)
	none := makeArray(t, mem, arrow.PrimitiveTypes.Int64, nil)
	defer none.Release()
	ix, err := Freeze[int64, float64](none, makeNone(t, mem))
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	for _, keys := range []arrow.Array{none, makeKeys(t, mem)} {
		got, hits, err := Get(ix, keys, mem)
		if err != nil || hits != 0 || got.NullN() != keys.Len() {
			t.Errorf("%v %d %v", got, hits, err)
		}
		got.Release()
	}
	set, err := Freeze[int64, struct{}](makeKeys(t, mem), nil)
	if err != nil || set.Len() != 2 {
		t.Fatalf("a set: %v", err)
	}
	defer set.Close()
	if _, _, err := Get(set, none, mem); !errors.Is(err, ErrType) {
		t.Errorf("values of a set: %v", err)
	}
}

func makeNone(t *testing.T, mem memory.Allocator) arrow.Array {
	a := makeArray(t, mem, arrow.PrimitiveTypes.Float64, nil)
	t.Cleanup(a.Release)
	return a
}

func makeKeys(t *testing.T, mem memory.Allocator) arrow.Array {
	a := makeArray(t, mem, arrow.PrimitiveTypes.Int64, []string{"1", "2"})
	t.Cleanup(a.Release)
	return a
}

// TestAppendColumn tests that a record batch gets one more column and keeps
// the others.
func TestAppendColumn(t *testing.T) {
	mem := checked(t)
	keys := makeKeys(t, mem)
	ix, err := Freeze[int64, int64](keys, keys)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	asked := makeArray(t, mem, arrow.PrimitiveTypes.Int64, []string{"2", "7", ""})
	defer asked.Release()
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: asked.DataType(), Nullable: true}}, nil)
	batch := array.NewRecordBatch(schema, []arrow.Array{asked}, 3)
	defer batch.Release()
	more, hits, err := AppendColumn(ix, batch, "id", "found", mem)
	if err != nil {
		t.Fatal(err)
	}
	defer more.Release()
	if hits != 1 || more.NumCols() != 2 || texts(more.Column(0)) != "2 7 null" || texts(more.Column(1)) != "2 null null" {
		t.Errorf("%v", more)
	}
	if _, _, err := AppendColumn(ix, batch, "no", "found", mem); err == nil {
		t.Error("a column that is not there")
	}
}

// TestInPlace tests that numbers are read and written in Arrow's memory.
func TestInPlace(t *testing.T) {
	mem := checked(t)
	keys := makeKeys(t, mem)
	v, err := view[int64](keys)
	if err != nil || &v[0] != &keys.(*array.Int64).Int64Values()[0] {
		t.Errorf("a copy, or %v", err)
	}
}
