package facetest

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/arena"
)

// ManyEntries returns n entries with keys from all over a domain, many of them
// more than once.
func ManyEntries[K pando.Key, V any](n int, d Domain[K], v Values[V], rng *rand.Rand) ([]K, []V) {
	keys, vals := make([]K, n), make([]V, n)
	sets := KeySets(d, rng)
	for i := range keys {
		keys[i] = sets[rng.IntN(4)].Key(i, n)
		vals[i] = v.Of(i)
	}
	return keys, vals
}

// layouts lists the layouts that keys and values allow, AutoLayout's first.
func Layouts[K pando.Key, V any](v Values[V]) []pando.LayoutKind {
	switch width := CodeBytes[K](); {
	case width == 0:
		if autoStrings() == pando.Compressed {
			return []pando.LayoutKind{pando.Compressed, pando.Apart, pando.Radix}
		}
		return []pando.LayoutKind{pando.Apart, pando.Compressed, pando.Radix}
	case v.Inline == width:
		return []pando.LayoutKind{pando.Pairs, pando.Apart, pando.Blocked, pando.Compressed, pando.Radix}
	}
	return []pando.LayoutKind{pando.Apart, pando.Blocked, pando.Compressed, pando.Radix}
}

// autoStrings is what AutoLayout is for string keys.
var autoStrings = sync.OnceValue(func() pando.LayoutKind {
	ix, err := pando.Freeze([]string{"a"}, []int{1})
	if err != nil {
		panic(err)
	}
	defer ix.Close()
	return ix.Stats().Layout
})

// PanicOf returns what call panics with, as text; "" if it does not.
func PanicOf(call func()) (text string) {
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
	}()
	call()
	return ""
}

// Call is a method with its name.
type Call struct {
	Name string
	Do   func()
}

// Drain runs a sequence to its end.
func Drain[K, V any](s iter.Seq2[K, V]) {
	for range s {
		runtime.Gosched()
	}
}

// EveryMethod lists calls of all methods but Close.
func EveryMethod[K pando.Key, V any](ix *pando.Frozen[K, V]) []Call {
	var k K
	keys, vals, ranks := make([]K, 3), make([]V, 3), make([]int, 3)
	others, counts := make([]V, 3), make([]int, 3) // calls may run at the same time
	var more []Call
	if CodeBytes[K]() == 0 {
		more = []Call{
			{"Prefix", func() { Drain(ix.Prefix(k)) }},
			{"PrefixCount", func() { ix.PrefixCount(k) }},
			{"GetBatchBytes", func() { ix.GetBatchBytes([]byte("abc"), []int32{0, 1, 2, 3}, others, nil) }},
		}
	}
	return append(more, []Call{
		{"Len", func() { ix.Len() }},
		{"Get", func() { ix.Get(k) }},
		{"GetBatch", func() { ix.GetBatch(keys, vals, nil) }},
		{"GetBatch of none", func() { ix.GetBatch(nil, nil, nil) }},
		{"Has", func() { ix.Has(k) }},
		{"Scan", func() { Drain(ix.Scan(pando.From(k))) }},
		{"Scan backwards", func() { Drain(ix.Scan(pando.Reverse(), pando.Limit(5))) }},
		{"Cursor", func() { ix.Cursor().Next() }},
		{"Rank", func() { ix.Rank(k) }},
		{"RankBatch", func() { ix.RankBatch(keys, ranks) }},
		{"At", func() { ix.At(0) }},
		{"Min", func() { ix.Min() }},
		{"Max", func() { ix.Max() }},
		{"Floor", func() { ix.Floor(k) }},
		{"Ceil", func() { ix.Ceil(k) }},
		{"All", func() { Drain(ix.All()) }},
		{"Backward", func() { Drain(ix.Backward()) }},
		{"Range", func() { Drain(ix.Range(k, k)) }},
		{"Count", func() { ix.Count(k, k) }},
		{"RangeBatch", func() { ix.RangeBatch(keys, keys, 0) }},
		{"CountBatch", func() { ix.CountBatch(keys, keys, counts) }},
		{"WriteTo", func() { ix.WriteTo(io.Discard) }},
		{"Stats", func() { ix.Stats() }},
	}...)
}

// ClosedText reports whether a panic is the one of an index that was closed.
func ClosedText(text string) bool {
	of := strings.HasPrefix(text, "pando: Frozen ") || strings.HasPrefix(text, "pando: Tree ")
	return of && strings.Contains(strings.ToLower(text), "close")
}

// BytesOf returns n bytes of few values.
func BytesOf(rng *rand.Rand, n int, from string) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = from[rng.IntN(len(from))]
	}
	return string(b)
}

// AnyBytes returns n bytes of any value.
func AnyBytes(rng *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return string(b)
}

func AURL(rng *rand.Rand, _ int) string {
	path := []string{"/", "/index.html", "/item?id=", "/de/item?id=", "/img/"}[rng.IntN(5)]
	return fmt.Sprintf("https://%s%d.example.%s%s%d", []string{"www", "shop", "m"}[rng.IntN(3)], rng.IntN(20),
		[]string{"com", "org", "net"}[rng.IntN(3)], path, rng.IntN(500))
}

func AUUID(rng *rand.Rand, _ int) string {
	return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", rng.Uint32(), rng.IntN(1<<16), rng.IntN(1<<12), 0x8000|rng.IntN(1<<14), rng.Uint64()>>16)
}

// APhone is a number as TPC-H makes them: a country and ten digits.
func APhone(rng *rand.Rand, _ int) string {
	return fmt.Sprintf("%d-%d-%d-%d", 10+rng.IntN(25), 100+rng.IntN(900), 100+rng.IntN(900), 1000+rng.IntN(9000))
}

// KeySet is a way to choose keys that tries to break something.
type KeySet[K pando.Key] struct {
	Name string
	Key  func(i, n int) K
}

func KeySets[K pando.Key](d Domain[K], rng *rand.Rand) []KeySet[K] {
	end := d.Ends[rng.IntN(len(d.Ends))]
	return []KeySet[K]{
		{"random", func(int, int) K { return d.Bits(rng.Uint64()) }},
		{"dense", func(i, _ int) K { return d.Num(2 * i) }},
		{"few distinct", func(_, n int) K { return d.Num(2 * rng.IntN(n/7+1)) }},
		{"ends", func(int, int) K { return d.Ends[rng.IntN(len(d.Ends))] }},
		{"all least", func(int, int) K { return slices.MinFunc(d.Ends, cmp.Compare[K]) }},
		{"all greatest", func(int, int) K { return slices.MaxFunc(d.Ends, cmp.Compare[K]) }},
		{"all equal", func(int, int) K { return end }},
	}
}

// Sizes lists 0, 1, and the borders of nodes and levels up to three levels.
func Sizes[K pando.Key](layout pando.LayoutKind) []int {
	out := []int{0, 1, 2, 3}
	perLeaf, fanout, levels := 8, 9, 3
	if CodeBytes[K]() == 4 {
		perLeaf, fanout, levels = 16, 17, 2
	}
	switch {
	case layout == pando.Compressed: // pages of 256
		return append(out, 16, 255, 256, 257, 1000, 9*256+1)
	case CodeBytes[K]() == 0: // strings have no nodes
		return append(out, 100, 3000)
	case layout == pando.Pairs:
		perLeaf /= 2
	case layout == pando.Blocked:
		fanout--
	}
	n := perLeaf
	for range levels + 1 {
		out = append(out, n-1, n, n+1)
		n *= fanout
	}
	return out
}

// BuildOptions is Options for an index that is built: Open takes no HugePages.
func BuildOptions(layout, preferred pando.LayoutKind, rng *rand.Rand) []pando.Option {
	return append(Options(layout, preferred, rng), pando.HugePages(pando.PageMode(rng.IntN(3))))
}

// Options chooses a layout, by its name or as the default where it is the
// default, and options that should make no difference.
func Options(layout, preferred pando.LayoutKind, rng *rand.Rand) []pando.Option {
	if layout == preferred && rng.IntN(2) == 0 {
		layout = pando.AutoLayout
	}
	return []pando.Option{
		pando.Layout(layout),
		pando.Workers([]int{0, 1, 2, 5}[rng.IntN(4)]),
		pando.On([]pando.Device{pando.Auto, pando.CPU}[rng.IntN(2)]),
		pando.ResponseTime([]time.Duration{0, 1, time.Second}[rng.IntN(3)]),
	}
}

// NoneInUse runs the garbage collector until no block is left: those of tests
// that came before.
func NoneInUse(t *testing.T) {
	t.Helper()
	for range 4000 { // others may keep the machine busy
		runtime.GC()
		if arena.InUse() == 0 {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%d bytes are still in use", arena.InUse())
}
