package attack

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// A case follows from its seed alone: it draws the same, and does the same,
// whatever ran before it.
func TestCasesRepeat(t *testing.T) {
	prepare(t)
	rng := seed.Rand(t)
	dir := t.TempDir()
	for _, a := range attacks {
		if a.free {
			continue
		}
		for range 5 {
			number := rng.Uint64()
			said := ""
			for round := range 2 {
				c := newCase(number, dir)
				err := c.attacked(a) // whatever breaks, breaks again
				now := fmt.Sprintf("%s\n%v", c.log(), err)
				if round > 0 && now != said {
					t.Errorf("%s %d says\n%s\nthe first time, and then\n%s", a.name, number, said, now)
				}
				said = now
				if err := emptied(dir); err != nil {
					t.Fatal(err)
				}
				newCase(rng.Uint64(), dir).attacked(attacks[0]) // what comes between makes no difference
			}
		}
	}
}

// liar is an index that answers wrongly in one method, once in some times.
type liar[K pando.Key, V any] struct {
	*pando.Frozen[K, V]
	lie string
	rng *rand.Rand
}

func (l *liar[K, V]) lies(method string) bool { return method == l.lie && oneIn(l.rng, 3) }

// off changes a number by one in the method that lies.
func (l *liar[K, V]) off(method string, n int) int {
	if l.lies(method) {
		return n + 1
	}
	return n
}

// entry returns another entry in the method that lies.
func (l *liar[K, V]) entry(method string, k K, v V, ok bool) (K, V, bool) {
	if l.lies(method) {
		return k, v, !ok
	}
	return k, v, ok
}

// short leaves out the last entry in the method that lies.
func (l *liar[K, V]) short(method string, s iter.Seq2[K, V]) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		var keys []K
		var vals []V
		for k, v := range s {
			keys, vals = append(keys, k), append(vals, v)
		}
		if l.lies(method) && len(keys) > 0 {
			keys = keys[:len(keys)-1]
		}
		for i, k := range keys {
			if !yield(k, vals[i]) {
				return
			}
		}
	}
}

func (l *liar[K, V]) Len() int     { return l.off("Len", l.Frozen.Len()) }
func (l *liar[K, V]) Rank(k K) int { return l.off("Rank", l.Frozen.Rank(k)) }
func (l *liar[K, V]) Get(k K) (V, bool) {
	v, ok := l.Frozen.Get(k)
	return v, ok != l.lies("Get")
}
func (l *liar[K, V]) At(i int) (K, V) {
	if l.lies("At") {
		i = 0
	}
	return l.Frozen.At(i)
}
func (l *liar[K, V]) Min() (K, V, bool) { k, v, ok := l.Frozen.Min(); return l.entry("Min", k, v, ok) }
func (l *liar[K, V]) Max() (K, V, bool) { k, v, ok := l.Frozen.Max(); return l.entry("Max", k, v, ok) }
func (l *liar[K, V]) Floor(a K) (K, V, bool) {
	k, v, ok := l.Frozen.Floor(a)
	return l.entry("Floor", k, v, ok)
}
func (l *liar[K, V]) Ceil(a K) (K, V, bool) {
	k, v, ok := l.Frozen.Ceil(a)
	return l.entry("Ceil", k, v, ok)
}
func (l *liar[K, V]) All() iter.Seq2[K, V]         { return l.short("All", l.Frozen.All()) }
func (l *liar[K, V]) Backward() iter.Seq2[K, V]    { return l.short("Backward", l.Frozen.Backward()) }
func (l *liar[K, V]) Prefix(k K) iter.Seq2[K, V]   { return l.short("Prefix", l.Frozen.Prefix(k)) }
func (l *liar[K, V]) Range(a, b K) iter.Seq2[K, V] { return l.short("Range", l.Frozen.Range(a, b)) }
func (l *liar[K, V]) Count(a, b K) int             { return l.off("Count", l.Frozen.Count(a, b)) }
func (l *liar[K, V]) PrefixCount(k K) int          { return l.off("PrefixCount", l.Frozen.PrefixCount(k)) }
func (l *liar[K, V]) GetBatch(keys []K, vals []V, found []bool) int {
	hits := l.Frozen.GetBatch(keys, vals, found)
	if l.lies("GetBatch") && len(vals) > 1 {
		vals[0], vals[1] = vals[1], vals[0]
	}
	return hits
}
func (l *liar[K, V]) RankBatch(keys []K, ranks []int) {
	l.Frozen.RankBatch(keys, ranks)
	if len(ranks) > 0 {
		ranks[len(ranks)-1] = l.off("RankBatch", ranks[len(ranks)-1]) // which is behind the last
	}
}
func (l *liar[K, V]) CountBatch(lo, hi []K, counts []int) {
	l.Frozen.CountBatch(lo, hi, counts)
	counts[0] = l.off("CountBatch", counts[0])
}
func (l *liar[K, V]) RangeBatch(lo, hi []K, limit int) *pando.Ranges[K, V] {
	r := l.Frozen.RangeBatch(lo, hi, limit)
	if l.lies("RangeBatch") && len(r.Keys) > 0 {
		slices.Reverse(r.Vals)
		r.Vals = r.Vals[1:]
		r.Keys = r.Keys[1:]
		r.Offsets[len(r.Offsets)-1]--
	}
	return r
}
func (l *liar[K, V]) GetBatchBytes(data []byte, offsets []int32, vals []V, found []bool) int {
	return l.off("GetBatchBytes", l.Frozen.GetBatchBytes(data, offsets, vals, found))
}
func (l *liar[K, V]) Save(path string) error {
	if l.lies("Save") {
		return l.Frozen.Save(path + "x")
	}
	return l.Frozen.Save(path)
}

// Whichever method lies, the log of operations finds it.
func TestLiesAreFound(t *testing.T) {
	prepare(t)
	rng := seed.Rand(t)
	var strs pair[string, uint64]
	for _, p := range pairs {
		if p, ok := p.(pair[string, uint64]); ok {
			strs = p
		}
	}
	f := config{n: 300, order: "shuffled"}
	keys, vals := strs.drawEntries(newCase(rng.Uint64(), ""), &f)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%d", keys[i], i) // so that values are not all of one key
	}
	ix := facetest.MustFreeze(t, keys, vals)
	defer ix.Close()
	model := facetest.NewModel(keys, vals, strs.vals.Same)
	for _, lie := range []string{"", "Len", "Get", "Rank", "At", "Min", "Max", "Floor", "Ceil", "Count", "PrefixCount", "All", "Backward", "Range", "Prefix",
		"GetBatch", "RankBatch", "CountBatch", "RangeBatch", "GetBatchBytes", "Save"} {
		c := newCase(rng.Uint64(), t.TempDir())
		s := &subject[string, uint64]{testCase: c, pair: strs, kind: frozenKind[string, uint64](), model: model, most: 50,
			ix: &liar[string, uint64]{ix, lie, c.rng}}
		var err error
		for i := 0; i < 3000 && err == nil; i++ {
			err = guarded(s.step)
		}
		if (err == nil) != (lie == "") {
			t.Errorf("a lie in %q: %v", lie, err)
		}
	}
}

// Names choose attacks.
func TestChoose(t *testing.T) {
	for names, want := range map[string]int{"": len(attacks), "files": 1, "close,answers": 2, "nonsense": 0} {
		if got, err := choose(names); len(got) != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d attacks, %v", names, len(got), err)
		}
	}
}
