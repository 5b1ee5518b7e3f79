package pando_test

import (
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

func TestUseAfterClosePanics(t *testing.T) {
	t.Run("pairs", usedAfterClose(facetest.Integers[uint64](), facetest.Uint64Values))
	t.Run("column", usedAfterClose(facetest.Integers[uint64](), facetest.Uint64Values, pando.Layout(pando.Apart)))
	t.Run("rows", usedAfterClose(facetest.Float64s[float64](), facetest.StringValues))
	t.Run("strings", usedAfterClose(facetest.Strings[string](), facetest.Uint64Values))
	t.Run("blocked", usedAfterClose(facetest.Integers[uint64](), facetest.Uint64Values, pando.Layout(pando.Blocked)))
	t.Run("compressed", usedAfterClose(facetest.Integers[uint64](), facetest.Uint64Values, pando.Layout(pando.Compressed)))
	t.Run("strings apart", usedAfterClose(facetest.Strings[string](), facetest.Uint64Values, pando.Layout(pando.Apart)))
}

func usedAfterClose[K pando.Key, V any](d facetest.Domain[K], v facetest.Values[V], opts ...pando.Option) func(t *testing.T) {
	return func(t *testing.T) {
		for _, n := range []int{0, 1, 1000} {
			keys, vals := facetest.ManyEntries(n, d, v, seed.Rand(t))
			ix := facetest.MustFreeze(t, keys, vals, opts...)
			for _, m := range facetest.EveryMethod(ix) {
				if m.Name == "At" && n == 0 {
					continue
				}
				if text := facetest.PanicOf(m.Do); text != "" {
					t.Errorf("%s panics before Close: %s", m.Name, text)
				}
			}
			for range 2 { // a second Close does nothing
				if err := ix.Close(); err != nil {
					t.Error(err)
				}
			}
			for _, m := range facetest.EveryMethod(ix) {
				if text := facetest.PanicOf(m.Do); !strings.HasPrefix(text, "pando: ") || !strings.Contains(text, "Close") {
					t.Errorf("%s after Close of %d entries: %q", m.Name, n, text)
				}
			}
		}
	}
}

// What was given out stays good: it is a copy.
func TestResultsOutliveClose(t *testing.T) {
	for _, layout := range facetest.Layouts[string](facetest.StringValues) {
		ix := facetest.MustFreeze(t, []string{"b", "a", "c"}, []string{"2", "1", "3"}, pando.Layout(layout))
		k, v := ix.At(1)
		r := ix.RangeBatch([]string{"a"}, []string{"c"}, 0)
		ix.Close()
		runtime.GC()
		if k != "b" || v != "2" || strings.Join(r.Keys, "") != "abc" || strings.Join(r.Vals, "") != "123" {
			t.Errorf("%v: %q, %q, %q", layout, k, v, r)
		}
	}
}

// An iteration whose body closes the index ends with a sentence, not with
// nonsense.
func TestCloseInsideIteration(t *testing.T) {
	for _, at := range []int{0, 1, 7, 8, 50, 99} {
		for _, what := range []string{"All", "Range", "Backward"} {
			ix := counted(t, 100)
			s := map[string]iter.Seq2[uint64, uint64]{"All": ix.All(), "Range": ix.Range(0, 1000), "Backward": ix.Backward()}[what]
			seen := 0
			text := facetest.PanicOf(func() {
				for k, v := range s {
					if k != v {
						t.Errorf("%s: entry %d, %d", what, k, v)
					}
					if seen == at {
						ix.Close()
					}
					seen++
				}
			})
			if seen != at+1 {
				t.Errorf("%s closed at entry %d yields %d", what, at, seen)
			}
			if at < 99 && !facetest.ClosedText(text) {
				t.Errorf("%s closed at entry %d: %q", what, at, text)
			}
		}
	}
}
