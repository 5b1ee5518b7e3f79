package pando_test

import (
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// panicOf gives what call panics with, as text; "" if it does not.
func panicOf(call func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	call()
	return ""
}

// call is a method with its name.
type call struct {
	name string
	do   func()
}

// drain runs a sequence to its end.
func drain[K, V any](s iter.Seq2[K, V]) {
	for range s {
		runtime.Gosched()
	}
}

// everyMethod lists calls of all methods but Close.
func everyMethod[K pando.Key, V any](ix *pando.Frozen[K, V]) []call {
	var k K
	keys, vals, ranks := make([]K, 3), make([]V, 3), make([]int, 3)
	var more []call
	if codeBytes[K]() == 0 {
		more = []call{{"Prefix", func() { drain(ix.Prefix(k)) }}, {"PrefixCount", func() { ix.PrefixCount(k) }}}
	}
	return append(more, []call{
		{"Len", func() { ix.Len() }},
		{"Get", func() { ix.Get(k) }},
		{"GetBatch", func() { ix.GetBatch(keys, vals, nil) }},
		{"GetBatch of none", func() { ix.GetBatch(nil, nil, nil) }},
		{"Rank", func() { ix.Rank(k) }},
		{"RankBatch", func() { ix.RankBatch(keys, ranks) }},
		{"At", func() { ix.At(0) }},
		{"Min", func() { ix.Min() }},
		{"Max", func() { ix.Max() }},
		{"Floor", func() { ix.Floor(k) }},
		{"Ceil", func() { ix.Ceil(k) }},
		{"All", func() { drain(ix.All()) }},
		{"Backward", func() { drain(ix.Backward()) }},
		{"Range", func() { drain(ix.Range(k, k)) }},
		{"Count", func() { ix.Count(k, k) }},
		{"RangeBatch", func() { ix.RangeBatch(keys, keys, 0) }},
		{"Stats", func() { ix.Stats() }},
	}...)
}

func TestUseAfterClosePanics(t *testing.T) {
	t.Run("pairs", usedAfterClose(integers[uint64](), uint64Values))
	t.Run("column", usedAfterClose(integers[int32](), uint64Values))
	t.Run("rows", usedAfterClose(float64s[float64](), stringValues))
	t.Run("strings", usedAfterClose(texts[string](), uint64Values))
	t.Run("blocked", usedAfterClose(integers[uint64](), uint64Values, pando.Layout(pando.Blocked)))
	t.Run("compressed", usedAfterClose(integers[int32](), uint64Values, pando.Layout(pando.Compressed)))
	t.Run("strings compressed", usedAfterClose(texts[string](), stringValues, pando.Layout(pando.Compressed)))
}

func usedAfterClose[K pando.Key, V any](d domain[K], v values[V], opts ...pando.Option) func(t *testing.T) {
	return func(t *testing.T) {
		for _, n := range []int{0, 1, 1000} {
			keys, vals := manyEntries(n, d, v, seed.Rand(t))
			ix := mustFreeze(t, keys, vals, opts...)
			for _, m := range everyMethod(ix) {
				if m.name == "At" && n == 0 {
					continue
				}
				if text := panicOf(m.do); text != "" {
					t.Errorf("%s panics before Close: %s", m.name, text)
				}
			}
			for range 2 { // a second Close does nothing
				if err := ix.Close(); err != nil {
					t.Error(err)
				}
			}
			for _, m := range everyMethod(ix) {
				if text := panicOf(m.do); !strings.HasPrefix(text, "pando: ") || !strings.Contains(text, "Close") {
					t.Errorf("%s after Close of %d entries: %q", m.name, n, text)
				}
			}
		}
	}
}

// What was given out stays good: it is a copy.
func TestResultsOutliveClose(t *testing.T) {
	for _, layout := range layouts[string](stringValues) {
		ix := mustFreeze(t, []string{"b", "a", "c"}, []string{"2", "1", "3"}, pando.Layout(layout))
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
			text := panicOf(func() {
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
			if at < 99 && !closedText(text) {
				t.Errorf("%s closed at entry %d: %q", what, at, text)
			}
		}
	}
}

// closedText says whether a panic is the one of an index that was closed.
func closedText(text string) bool {
	return strings.HasPrefix(text, "pando: Frozen ") && strings.Contains(strings.ToLower(text), "close")
}
