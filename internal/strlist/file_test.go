package strlist

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/snapshot"
)

// mapped writes a list to a file and opens it there. change may spoil it.
func mapped(t *testing.T, built *List, change func([]byte)) *List {
	t.Helper()
	offsets, data := built.Segments()
	at := (len(offsets) + 4095) &^ 4095
	file := make([]byte, at+len(data))
	copy(file, offsets)
	copy(file[at:], data)
	change(file)
	path := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	mem, err := arena.Map(f, int64(len(file)), []arena.Part{{Size: len(offsets)}, {Offset: at, Size: len(data)}}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return Open(mem.Segment(0), mem.Segment(1), mem)
}

func untouched([]byte) {}

func TestOpenedListAgainstSortedSlice(t *testing.T) {
	rng := seed.Rand(t)
	for n := 0; n < 2000; n += 1 + n/2 {
		keys := randomStrings(n, rng)
		slices.Sort(keys)
		l := mapped(t, Build(keys, nil), untouched)
		if err := l.Check(true); err != nil {
			t.Fatal(err)
		}
		if err := compare(l, keys, slices.Concat(awkward, randomStrings(50, rng))); err != nil {
			t.Fatalf("%q: %v", keys, err)
		}
		out := make([]string, n)
		for i := range out {
			if out[i] = l.Key(i); string(l.Copy(i)) != keys[i] {
				t.Fatalf("copy of %q is %q", keys[i], l.Copy(i))
			}
		}
		l.Release()
		if !l.Released() || !slices.Equal(out, keys) {
			t.Fatal("strings that were given out are gone")
		}
		for i := range keys { // must not fault
			l.Key(i)
		}
	}
}

// Offsets may be any numbers: strings stay inside, searches end.
func TestOpenedGarbage(t *testing.T) {
	rng := seed.Rand(t)
	keys := randomStrings(500, rng)
	built := Build(keys, rows(keys))
	for _, fill := range []func() byte{
		func() byte { return 0 }, func() byte { return 0xff }, func() byte { return byte(rng.Uint32()) },
		func() byte { return byte(rng.IntN(2)) * 3 },
	} {
		l := mapped(t, built, func(file []byte) {
			for i := range file {
				file[i] = fill()
			}
		})
		if err := l.Check(true); err == nil {
			t.Error("garbage is taken for a list")
		}
		for i := range 500 {
			if n := len(l.Key(i)); n > len(l.data) {
				t.Fatalf("string %d has %d bytes", i, n)
			}
		}
		for _, k := range awkward {
			if r, _ := l.Seek(k); r < 0 || r > 500 {
				t.Fatalf("Seek(%q) = %d", k, r)
			}
			if r := l.After(k); r < 0 || r > 500 {
				t.Fatalf("After(%q) = %d", k, r)
			}
		}
		l.Release()
	}
}

func TestCheckFindsFaults(t *testing.T) {
	sorted := Build([]string{"a", "b", "bb", "c"}, nil)
	if err := sorted.Check(true); err != nil {
		t.Error(err)
	}
	unsorted := Build([]string{"b", "a"}, nil)
	if err := unsorted.Check(false); err != nil {
		t.Error(err)
	}
	for says, l := range map[string]*List{
		"out of order": unsorted,
		"first string": {data: []byte("abc"), offsets: []uint64{1, 3}},
		"last string":  {data: []byte("abc"), offsets: []uint64{0, 2}},
		"bytes 2 to 1": {data: []byte("abc"), offsets: []uint64{0, 2, 1, 3}},
		"bytes 0 to 9": {data: []byte("abc"), offsets: []uint64{0, 9, 3}},
	} {
		if err := l.Check(true); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

// docs/format.md gives these numbers; a file that was written once must be
// readable for ever.
func TestFormats(t *testing.T) {
	want := []*snapshot.Format{{
		Number: 3, Name: "apart", Version: 1, Strings: true,
		Sections: []snapshot.Kind{{Number: 5, Name: "key offsets"}, {Number: 6, Name: "key bytes"}},
	}}
	if got := (Layout{}).Formats(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
