package tuple

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/seed"
)

// draw returns a value of a kind: often one of a few, or at an edge.
func draw(kind Kind, rng *rand.Rand) Element {
	edge := []uint64{0, 1, 2, 127, 128, 255, 256, 257, 65535, 65536, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, math.MaxUint64}
	n := edge[rng.IntN(len(edge))]
	switch kind {
	case KindInt:
		if rng.IntN(2) == 0 {
			return Uint(n >> rng.IntN(3))
		}
		return Int(-int64(n >> 1))
	case KindFloat:
		return Float([]float64{0, math.Copysign(0, -1), 1, -1, math.NaN(), math.Inf(1), math.Inf(-1), rng.NormFloat64(), math.MaxFloat64, 5e-324}[rng.IntN(10)])
	case KindTime:
		return Time(time.Unix(int64(n>>2)-int64(edge[rng.IntN(5)]), rng.Int64N(3)*499_999_999).In(time.Local))
	case KindUUID:
		return UUID([16]byte{byte(rng.IntN(3)), 15: byte(rng.IntN(3))})
	}
	b := make([]byte, rng.IntN(4))
	for i := range b {
		b[i] = []byte{0, 1, 2, 'a', 0xfe, 0xff}[rng.IntN(6)]
	}
	if kind == KindString {
		return String(string(b))
	}
	return Bytes(b)
}

// value compares elements of one kind by what they are.
func compare(a, b Element) (order int) {
	switch a.kind {
	case KindInt:
		order = integer(a).Cmp(integer(b))
	case KindFloat:
		order = cmp.Compare(math.Float64frombits(a.bits), math.Float64frombits(b.bits))
	case KindTime:
		var x, y time.Time
		a.set(&x)
		b.set(&y)
		order = x.Compare(y)
	default:
		order = cmp.Compare(a.text, b.text)
	}
	if a.desc {
		return -order
	}
	return order
}

func integer(e Element) *big.Int {
	n := new(big.Int).SetUint64(e.bits)
	if e.negative {
		n.Neg(n)
	}
	return n
}

// Keys have the order of tuples, come back as tuples, and begin with the keys of
// what tuples begin with.
func TestProperties(t *testing.T) {
	rng := seed.Rand(t)
	kinds := []Kind{KindBytes, KindString, KindInt, KindFloat, KindTime, KindUUID}
	for range 200_000 {
		n := 1 + rng.IntN(4)
		var a, b []Element
		for range n {
			kind, desc := kinds[rng.IntN(len(kinds))], rng.IntN(2) == 0
			x, y := draw(kind, rng), draw(kind, rng)
			if rng.IntN(2) == 0 {
				y = x
			}
			if desc {
				x, y = Desc(x), Desc(y)
			}
			a, b = append(a, x), append(b, y)
		}
		b = b[:rng.IntN(n)+1]
		want := 0
		for i := range b {
			if want == 0 {
				want = compare(a[i], b[i])
			}
		}
		if want == 0 {
			want = cmp.Compare(len(a), len(b))
		}
		x, y := Key(a...), Key(b...)
		if cmp.Compare(x, y) != want {
			t.Fatalf("%+v and %+v compare as %d, their keys %q and %q do not", a, b, want, x, y)
		}
		cut := rng.IntN(n + 1)
		if !strings.HasPrefix(x, Key(a[:cut]...)) {
			t.Fatalf("the key of %+v does not begin with that of its first %d", a, cut)
		}
		back, err := Parse(x)
		if err != nil || fmt.Sprint(back) != fmt.Sprint(a) {
			t.Fatalf("%+v came back as %+v, %v", a, back, err)
		}
	}
}

// What is no key is an error, whatever it is; what is one has no other form.
func TestParseAnything(t *testing.T) {
	rng := seed.Rand(t)
	for range 200_000 {
		key := []byte(Key(draw(KindString, rng), Desc(draw(KindInt, rng)), draw(KindTime, rng)))
		for range 1 + rng.IntN(2) {
			key[rng.IntN(len(key))] = byte(rng.IntN(256))
		}
		key = key[:rng.IntN(len(key)+1)]
		all, err := Parse(string(key))
		if err == nil && Key(all...) != string(key) {
			t.Fatalf("%q is read as %+v, whose key is %q", key, all, Key(all...))
		}
		if err != nil && !errors.Is(err, ErrKey) {
			t.Fatal(err)
		}
	}
}

func TestScan(t *testing.T) {
	when := time.Date(2026, 11, 15, 12, 0, 0, 5, time.UTC)
	key := Key(Int(-5), Uint(7), Desc(Float(2.5)), String("a\x00b"), Bytes([]byte{1}), Time(when), UUID([16]byte{9}))
	var i int
	var u uint64
	var f float64
	var s string
	var b []byte
	var at time.Time
	var id [16]byte
	if err := Scan(key, &i, &u, &f, &s, &b, &at, &id); err != nil {
		t.Fatal(err)
	}
	if i != -5 || u != 7 || f != 2.5 || s != "a\x00b" || len(b) != 1 || !at.Equal(when) || id[0] != 9 {
		t.Error(i, u, f, s, b, at, id)
	}
	if err := Scan(key, nil, nil, nil, nil, nil, nil, nil); err != nil {
		t.Error(err)
	}
	for _, dst := range [][]any{{&u, nil, nil, nil, nil, nil, nil}, {&i}, {nil, &f, nil, nil, nil, nil, nil}, {new(bool), nil, nil, nil, nil, nil, nil}} {
		if err := Scan(key, dst...); !errors.Is(err, ErrKey) {
			t.Errorf("%T: %v", dst, err)
		}
	}
	var big int64
	if err := Scan(Key(Uint(math.MaxUint64)), &big); !errors.Is(err, ErrKey) {
		t.Error(err)
	}
	if err := Scan(Key(Int(math.MinInt64)), &big); err != nil || big != math.MinInt64 {
		t.Error(big, err)
	}
}
