package par

import (
	"slices"
	"testing"
)

// Copy copies all of a slice, of any length, and nothing behind it.
func TestCopy(t *testing.T) {
	for _, n := range []int{0, 1, 1000, copyStep / 8, copyStep/8 + 1, copyPiece/8 - 1, copyPiece / 8, copyPiece/8 + 1, copyPiece} {
		for _, workers := range []int{1, 3} {
			src, dst := make([]int, n), make([]int, n+1)
			for i := range src {
				src[i] = i + 1
			}
			Copy(dst, src, workers)
			if !slices.Equal(dst[:n], src) || dst[n] != 0 {
				t.Errorf("%d numbers on %d workers are copied otherwise", n, workers)
			}
		}
	}
	Copy(make([]struct{}, 5), make([]struct{}, 5), 2)
	Copy([]string{""}, []string{"x"}, 1)
}

// No step of a copy is long, whatever is copied. Beside a collection each
// pointer takes some 50 ns: 1 MiB of them would be 13 ms in which nothing else
// can run.
func TestStepsAreShort(t *testing.T) {
	type row [4]uint64
	for what, n := range map[string]int{
		"numbers": stepOf[uint64](), "pointers": stepOf[*int](), "strings": stepOf[string]() * 2, "rows": stepOf[row]() * 4,
	} {
		if n < 1024 || n > 4096 {
			t.Errorf("%s: %d words are copied at a time", what, n)
		}
	}
	if n := stepOf[[2 * copyStep]byte](); n != 1 {
		t.Errorf("%d large arrays are copied at a time", n)
	}
	if n := stepOf[struct{}](); n < 1 {
		t.Errorf("%d values without a size are copied at a time", n)
	}
}

func TestCopyAllocatesNothing(t *testing.T) {
	src, dst := make([]string, 100_000), make([]string, 100_000)
	if n := testing.AllocsPerRun(20, func() { Copy(dst, src, 1) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// What grows keeps its values, and growing costs a constant time per value.
func TestGrowAppendClear(t *testing.T) {
	var s []string
	grown := 0
	for i := range 100_000 {
		if len(s) == cap(s) {
			s = Grow(s, 1)
			grown++
		}
		s = append(s, string(rune(i)))
	}
	if grown > 60 {
		t.Errorf("%d times grown", grown)
	}
	s = Append(s, s)
	for i, v := range s {
		if v != string(rune(i%100_000)) {
			t.Fatalf("value %d is %q", i, v)
		}
	}
	if same := Append(s[:5:10], []string{"a"}); &same[0] != &s[0] || s[5] != "a" {
		t.Error("a slice with room is copied")
	}
	Clear(s)
	if i := slices.IndexFunc(s, func(v string) bool { return v != "" }); i >= 0 {
		t.Errorf("value %d is not cleared", i)
	}
}
