package pando_test

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

func keysOf[K pando.Key, V any](s iter.Seq2[K, V]) (keys []K) {
	for k := range s {
		keys = append(keys, k)
	}
	return keys
}

// both returns a Frozen and a Tree of the same keys, each its own value.
func both[K pando.Key](t *testing.T, keys []K) map[string]pando.Index[K, K] {
	tree, err := pando.TreeOf(keys, keys)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]pando.Index[K, K]{"Frozen": facetest.MustFreeze(t, keys, keys), "Tree": tree}
}

// A bound may be of any numeric type: what counts is the number.
func TestScanBoundsOfOtherTypes(t *testing.T) {
	for name, ix := range both(t, []uint64{0, 3, 1 << 53, 1<<53 + 1, math.MaxUint64}) {
		defer ix.Close()
		for said, c := range map[string]struct {
			opts []pando.ScanOption
			want int
		}{
			"From(int)":              {[]pando.ScanOption{pando.From(3)}, 4},
			"From(negative)":         {[]pando.ScanOption{pando.From(-7)}, 5},
			"Before(negative)":       {[]pando.ScanOption{pando.Before(int8(-1))}, 0},
			"After(2.5)":             {[]pando.ScanOption{pando.After(2.5)}, 4},
			"To(2.5)":                {[]pando.ScanOption{pando.To(2.5)}, 1},
			"After(2^53 as float)":   {[]pando.ScanOption{pando.After(float64(1 << 53))}, 2},
			"From(2^64)":             {[]pando.ScanOption{pando.From(float32(1 << 32 * 1 << 32))}, 0},
			"To(infinity)":           {[]pando.ScanOption{pando.To(math.Inf(1))}, 5},
			"From(NaN)":              {[]pando.ScanOption{pando.From(math.NaN())}, 5},
			"To(NaN)":                {[]pando.ScanOption{pando.To(math.NaN())}, 0},
			"nothing at all":         {[]pando.ScanOption{{}}, 5},
			"After the greatest":     {[]pando.ScanOption{pando.After(uint64(math.MaxUint64))}, 0},
			"Before the least":       {[]pando.ScanOption{pando.Before(uint64(0))}, 0},
			"none between":           {[]pando.ScanOption{pando.From(5), pando.Before(4)}, 0},
			"a limit of none":        {[]pando.ScanOption{pando.Limit(0)}, 0},
			"the least of limits":    {[]pando.ScanOption{pando.Limit(4), pando.Limit(2), pando.Limit(3)}, 2},
			"a limit beyond all int": {[]pando.ScanOption{pando.From(3), pando.Limit(math.MaxInt)}, 4},
		} {
			if got := keysOf(ix.Scan(c.opts...)); len(got) != c.want {
				t.Errorf("%s, %s: %d, want %d entries", name, said, got, c.want)
			}
		}
	}
}

func TestScanPrefix(t *testing.T) {
	words := []string{"", "a", "ab", "abc", "abd", "b", "\xff", "\xff\xff", "\xff\xffa"}
	ix := facetest.MustFreeze(t, words, words)
	defer ix.Close()
	for _, p := range append(words, "ab\x00", "x", "\xff\xff\xff") {
		var want []string
		for _, w := range words {
			if strings.HasPrefix(w, p) && w != "ab" {
				want = append(want, w)
			}
		}
		got := slices.DeleteFunc(keysOf(ix.Scan(pando.HasPrefix(p))), func(s string) bool { return s == "ab" })
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("HasPrefix(%q): %q, want %q", p, got, want)
		}
		type word string
		down := keysOf(ix.Scan(pando.HasPrefix(word(p)), pando.Before("b"), pando.After("ab"), pando.Reverse()))
		want = slices.DeleteFunc(want, func(s string) bool { return s <= "ab" || s >= "b" })
		slices.Reverse(want)
		if !slices.Equal(down, want) {
			t.Errorf("HasPrefix(%q) between ab and b, down: %q, want %q", p, down, want)
		}
	}
}

// A string does not bound numbers.
func TestScanOfAnotherFamilyPanics(t *testing.T) {
	for name, ix := range both(t, []uint32{1, 2}) {
		defer ix.Close()
		for _, o := range []pando.ScanOption{pando.From("a"), pando.HasPrefix("a")} {
			if text := facetest.PanicOf(func() { ix.Scan(o) }); !strings.Contains(text, "uint32") {
				t.Errorf("%s: %q", name, text)
			}
		}
	}
	words := facetest.MustFreeze(t, []string{"a"}, []uint64{1})
	defer words.Close()
	if text := facetest.PanicOf(func() { words.Scan(pando.To(1)) }); !strings.Contains(text, "string") {
		t.Errorf("%q", text)
	}
	if text := facetest.PanicOf(func() { pando.Limit(-1) }); !strings.Contains(text, "Limit(-1)") {
		t.Errorf("%q", text)
	}
}

// Key, Value and AppendKey need an entry.
func TestCursorAtNoEntryPanics(t *testing.T) {
	for name, ix := range both(t, []uint32{1, 2}) {
		defer ix.Close()
		c := ix.Cursor()
		c.Seek(3)
		for _, m := range []facetest.Call{{Name: "Key", Do: func() { c.Key() }}, {Name: "Value", Do: func() { c.Value() }}, {Name: "AppendKey", Do: func() { c.AppendKey(nil) }}} {
			if text := facetest.PanicOf(m.Do); !strings.HasPrefix(text, "pando: Cursor."+m.Name) {
				t.Errorf("%s, %s: %q", name, m.Name, text)
			}
		}
		if !c.Prev() || c.Key() != 2 {
			t.Errorf("%s: Prev from behind the end", name)
		}
	}
}

// A cursor of a tree goes to what is there at that time.
func TestCursorOverChanges(t *testing.T) {
	tree, err := pando.TreeOf([]float64{10, 20, 30}, []string{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	c := tree.Cursor()
	c.Seek(20)
	tree.Delete(20)
	tree.Set(25, "new")
	if c.Key() != 20 || c.Value() != "b" {
		t.Errorf("what was read has changed: %v, %q", c.Key(), c.Value())
	}
	if !c.Next() || c.Key() != 25 || c.Value() != "new" {
		t.Errorf("Next does not see a new key: %v", c.Valid())
	}
	c.Last()
	if c.Next() || c.Valid() {
		t.Error("Next behind the last")
	}
	tree.Set(math.MaxFloat64, "end")
	if !c.Next() || c.Key() != math.MaxFloat64 || c.Next() || !c.Prev() || c.Key() != math.MaxFloat64 {
		t.Error("Next does not see what was put behind the end")
	}
	tree.Delete(10)
	if !c.Seek(0) || c.Key() != 25 || c.Prev() || !c.Next() || c.Key() != 25 {
		t.Error("around the first")
	}
}

// page is a value of many bytes.
type page [4096]byte

// Neither a step of a cursor nor a range over numbers allocates.
func TestIterationsAllocateNothing(t *testing.T) {
	if seed.RaceDetector {
		t.Skip("the race detector makes pools forget")
	}
	keys, words := make([]uint64, 5000), make([]string, 5000)
	for i := range keys {
		keys[i], words[i] = uint64(i)*2, fmt.Sprintf("%08d", i*2)
	}
	numbers := facetest.MustFreeze(t, keys, keys)
	texts := facetest.MustFreeze(t, words, keys)
	tree, err := pando.TreeOf(keys, keys)
	if err != nil {
		t.Fatal(err)
	}
	defer numbers.Close()
	defer texts.Close()
	defer tree.Close()
	set := facetest.MustFreeze(t, keys, make([]struct{}, len(keys)))
	defer set.Close()
	wide := facetest.MustFreeze(t, []int64{1, 2, 3}, make([]page, 3))
	defer wide.Close()
	named := facetest.MustFreeze(t, []float64{1, 2, 3}, []string{"a", "b", "c"})
	defer named.Close()
	sum, buf := uint64(0), make([]byte, 0, 64)
	a, b, c := numbers.Cursor(), texts.Cursor(), tree.Cursor()
	for _, call := range []facetest.Call{
		{Name: "Range of 1", Do: func() {
			for _, v := range numbers.Range(100, 100) {
				sum += v
			}
		}},
		{Name: "Range of 2 in a set", Do: func() {
			for k := range set.Range(100, 103) {
				sum += k
			}
		}},
		{Name: "Range of 2 large values", Do: func() {
			for _, v := range wide.Range(2, 3) {
				sum += uint64(v[0])
			}
		}},
		{Name: "Range of 2 strings", Do: func() {
			for _, v := range named.Range(2, 3) {
				sum += uint64(len(v))
			}
		}},
		{Name: "Range of 100", Do: func() {
			for _, v := range numbers.Range(100, 299) {
				sum += v
			}
		}},
		{Name: "Range of a tree", Do: func() {
			for _, v := range tree.Range(100, 299) {
				sum += v
			}
		}},
		{Name: "cursor", Do: func() { walkCursor(a, 100, &sum) }},
		{Name: "cursor of a tree", Do: func() { walkCursor(c, 100, &sum) }},
		{Name: "cursor of strings", Do: func() {
			walkCursor(b, "00000100", &sum)
			buf = b.AppendKey(buf[:0])
		}},
	} {
		if n := testing.AllocsPerRun(50, call.Do); n > 0 {
			t.Errorf("%s: %v allocations", call.Name, n)
		}
	}
}

func walkCursor[K pando.Key](c pando.Cursor[K, uint64], key K, sum *uint64) {
	c.Seek(key)
	for range 300 {
		c.Next()
		*sum += c.Value()
	}
	for range 500 {
		c.Prev()
	}
	c.Next()
}
