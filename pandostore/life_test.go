package pandostore

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/disk/crash"
)

// keyspace is the number of keys that tests use.
const keyspace = 24

// state is the value of each key, 0 for none: the simplest thing that could be right.
type state [keyspace]int32

func (s state) min() int {
	for i, v := range s {
		if v != 0 {
			return i
		}
	}
	return -1
}

func (s state) max() int {
	for i := keyspace - 1; i >= 0; i-- {
		if s[i] != 0 {
			return i
		}
	}
	return -1
}

// world is the types of a store: key i and value n, and back.
type world[K pando.Key, V any] struct {
	name   string
	key    func(i int) K
	val    func(n int32) V
	keyOf  func(K) int
	number func(V) int32
}

var numbers = world[uint64, uint64]{"numbers", func(i int) uint64 { return uint64(i) << 40 }, func(n int32) uint64 { return uint64(n) << 8 },
	func(k uint64) int { return int(k >> 40) }, func(v uint64) int32 { return int32(v >> 8) }}

var texts = world[string, string]{"strings",
	func(i int) string { return fmt.Sprintf("%02d", i) + strings.Repeat("k", i*3) },
	func(n int32) string { return fmt.Sprint(n) + strings.Repeat("v", int(n%70)) },
	func(k string) int { i, _ := strconv.Atoi(k[:2]); return i },
	func(v string) int32 { n, _ := strconv.Atoi(strings.TrimRight(v, "v")); return int32(n) }}

type row struct {
	N    int32
	More [5]uint16
}

var rows = world[int16, row]{"rows", func(i int) int16 { return int16(i - 10) }, func(n int32) row { return row{n, [5]uint16{uint16(n), 4: 7}} },
	func(k int16) int { return int(k) + 10 }, func(v row) int32 { return v.N }}

var slices_ = world[float32, []byte]{"bytes", func(i int) float32 { return float32(i) - 7.5 }, func(n int32) []byte { return fmt.Append(nil, n) },
	func(k float32) int { return int(k + 7.5) }, func(v []byte) int32 { n, _ := strconv.Atoi(string(v)); return int32(n) }}

// read returns what a store holds.
func (w *world[K, V]) read(s *Store[K, V]) (got state) {
	for k, v := range s.All() {
		got[w.keyOf(k)] = w.number(v)
	}
	return got
}

// history is the states of the keys of one writer, one after the other.
type history struct {
	mu     sync.Mutex
	states []state
	acked  atomic.Int64 // states[acked] was acknowledged
	synced atomic.Int64 // states[synced] is to be durable
}

func (h *history) at(i int64) state {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.states[i]
}

func (h *history) issue(s state) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.states = append(h.states, s)
}

func (h *history) issued() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(len(h.states) - 1)
}

// life is a store in a folder that crashes, and what is known of it.
type life[K pando.Key, V any] struct {
	*world[K, V]
	t       testing.TB
	opts    []Option
	lazy    bool // acknowledged is not yet durable
	fs      *crash.Folder
	writers []*history // writer g has the keys that leave g when divided by their number
	images  *atomic.Int64
	seed    uint64
	skip    int  // calls without an image, on average, after one with
	nested  bool // recoveries crash, too
}

// small makes segments and frames so small that tests have many.
func small(c *config) { c.segment, c.frame = 6<<10, 250 }

// medium makes segments that a folder in memory holds many of.
func medium(c *config) { c.segment, c.frame = 1<<20, 64<<10 }

// check opens an image, which must hold a state between those acknowledged and those issued.
func (l *life[K, V]) check(image *crash.Folder, lo []int64, what string) {
	hi := make([]int64, len(l.writers))
	for g, h := range l.writers {
		hi[g] = h.issued()
	}
	if n := l.images.Add(1); l.nested && n%4 == 0 {
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(l.seed, uint64(n)))
		image.SetBefore(func(_ int, in string) {
			mu.Lock()
			defer mu.Unlock()
			if rng.IntN(3) == 0 {
				again := *l
				again.nested = false
				again.check(image.Image(rng), lo, what+", then in recovery "+in)
			}
		})
	}
	s, err := open[K, V](image, l.opts)
	if err != nil {
		l.t.Errorf("after a crash before %s: %v", what, err)
		return
	}
	got := l.read(s)
	if err := s.Close(); err != nil {
		l.t.Errorf("after a crash before %s: close: %v", what, err)
	}
	l.compare(got, lo, hi, what)
}

// compare demands that each writer's keys are as they were between two moments.
func (l *life[K, V]) compare(got state, lo, hi []int64, what string) {
	for g, h := range l.writers {
		ok := false
		for i := lo[g]; i <= hi[g] && !ok; i++ {
			ok = l.mine(g, got) == l.mine(g, h.at(i))
		}
		if !ok {
			l.t.Errorf("after a crash before %s: writer %d has\n%v, acknowledged (%d) was\n%v, issued (%d)\n%v", what, g,
				l.mine(g, got), lo[g], h.at(lo[g]), hi[g], h.at(hi[g]))
		}
	}
}

// mine returns a state without the keys of other writers.
func (l *life[K, V]) mine(g int, s state) state {
	for i := range s {
		if i%len(l.writers) != g {
			s[i] = 0
		}
	}
	return s
}

// certain returns the states that must be there after a crash.
func (l *life[K, V]) certain() (lo []int64) {
	for _, h := range l.writers {
		if l.lazy {
			lo = append(lo, h.synced.Load())
		} else {
			lo = append(lo, h.acked.Load())
		}
	}
	return lo
}

// watch makes images before each call.
func (l *life[K, V]) watch() {
	var mu sync.Mutex // the next segment is made beside the others
	rng := rand.New(rand.NewPCG(l.seed, 5))
	l.fs.SetBefore(func(n int, what string) {
		mu.Lock()
		defer mu.Unlock()
		if l.t.Failed() || rng.IntN(l.skip+1) > 0 {
			return
		}
		lo := l.certain()
		l.check(l.fs.Image(rng), lo, fmt.Sprintf("call %d, %s", n, what))
	})
}

// step does something, and returns the state after it, and what to do.
func (l *life[K, V]) step(rng *rand.Rand, g int, s *Store[K, V], was state) (next state, do func() error) {
	next = was
	pick := func() int { return rng.IntN(keyspace/len(l.writers))*len(l.writers) + g }
	k, n := pick(), rng.Int32N(1<<20)+1
	wrong := func(what string, got, want any) error { return fmt.Errorf("%s: %v, want %v", what, got, want) }
	old := func(v V, had bool, err error, want int32) error {
		if err == nil && (had != (want != 0) || had && l.number(v) != want) {
			err = wrong("old value", l.number(v), want)
		}
		return err
	}
	kinds := 9
	if len(l.writers) == 1 {
		kinds = 13
	}
	switch rng.IntN(kinds) {
	case 0, 1:
		next[k] = n
		return next, func() error { return s.Set(l.key(k), l.val(n)) }
	case 2:
		next[k] = n
		return next, func() error { v, had, err := s.Swap(l.key(k), l.val(n)); return old(v, had, err, was[k]) }
	case 3:
		next[k] = 0
		return next, func() error { v, had, err := s.Delete(l.key(k)); return old(v, had, err, was[k]) }
	case 4:
		next[k] = was[k] + 1
		return next, func() error {
			return s.Update(l.key(k), func(v V, had bool) (V, bool) { return l.val(l.number(v) + 1), true })
		}
	case 5, 6: // a batch, often of several frames
		var keys []K
		var vals []V
		for range rng.IntN(40) {
			k, n = pick(), n+1
			next[k] = n
			keys, vals = append(keys, l.key(k)), append(vals, l.val(n))
		}
		return next, func() error { return s.SetBatch(keys, vals) }
	case 7:
		var keys []K
		var vals []V
		var ops []pando.Op
		var olds []int32
		for range rng.IntN(30) {
			k, n = pick(), n+1
			o := pando.Op(rng.IntN(3))
			olds = append(olds, next[k])
			if o == pando.OpSet {
				next[k] = n
			} else if o == pando.OpDelete {
				next[k] = 0
			}
			keys, vals, ops = append(keys, l.key(k)), append(vals, l.val(n)), append(ops, o)
		}
		found := make([]bool, len(ops))
		return next, func() error {
			err := s.Apply(ops, keys, vals, found)
			for i := range olds {
				if err == nil && len(l.writers) == 1 {
					err = old(vals[i], found[i], nil, olds[i])
				}
			}
			return err
		}
	case 8:
		var keys []K
		for range rng.IntN(8) {
			k = pick()
			next[k] = 0
			keys = append(keys, l.key(k))
		}
		return next, func() error { _, err := s.DeleteBatch(keys, nil); return err }
	case 9:
		lo, hi, want := k, min(keyspace-1, k+rng.IntN(5)), 0
		for i := lo; i <= hi; i++ {
			if was[i] != 0 {
				want++
			}
			next[i] = 0
		}
		return next, func() error {
			got, err := s.DeleteRange(l.key(lo), l.key(hi))
			if err == nil && got != want {
				err = wrong("deleted", got, want)
			}
			return err
		}
	case 10, 11:
		k, pop := was.min(), s.PopMin
		if n%2 == 0 {
			k, pop = was.max(), s.PopMax
		}
		if k >= 0 {
			next[k] = 0
		}
		return next, func() error {
			key, val, ok, err := pop()
			if err == nil && (ok != (k >= 0) || ok && (l.keyOf(key) != k || l.number(val) != was[k])) {
				err = wrong("popped", key, k)
			}
			return err
		}
	}
	return next, func() error { return s.Sync() }
}

// live opens a store and lets writers change it, some steps each; now and then a
// checkpoint, and a sync. It returns the first error.
func (l *life[K, V]) live(steps int, checkpoint bool) error {
	s, err := open[K, V](l.fs, l.opts)
	if err != nil {
		return err
	}
	errs := make(chan error, len(l.writers))
	for g, h := range l.writers {
		go func() {
			errs <- func() error {
				rng := rand.New(rand.NewPCG(l.seed, uint64(100+g)))
				for range steps {
					if err := l.one(rng, g, h, s, checkpoint); err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range l.writers {
		if e := <-errs; err == nil {
			err = e
		}
	}
	closed := s.Close()
	if err == nil {
		err = closed
	}
	if err == nil {
		for _, h := range l.writers {
			h.synced.Store(h.acked.Load())
		}
	}
	return err
}

// one does one step of a writer.
func (l *life[K, V]) one(rng *rand.Rand, g int, h *history, s *Store[K, V], checkpoint bool) error {
	switch rng.IntN(25) {
	case 0:
		n := h.acked.Load()
		if err := s.Sync(); err != nil {
			return err
		}
		h.synced.Store(n)
		return nil
	case 1:
		if checkpoint {
			n := h.acked.Load()
			if err := s.Checkpoint(); err != nil {
				return err
			}
			h.synced.Store(n)
			return nil
		}
	}
	next, do := l.step(rng, g, s, h.at(h.acked.Load()))
	h.issue(next)
	if err := do(); err != nil {
		return err
	}
	h.acked.Add(1)
	if got := l.mine(g, l.read(s)); len(l.writers) == 1 && got != next {
		return fmt.Errorf("readers see\n%v, want\n%v", got, next)
	}
	return nil
}

// newLife returns a life in an empty folder.
func newLife[K pando.Key, V any](t testing.TB, w *world[K, V], seed uint64, writers int, opts ...Option) *life[K, V] {
	l := &life[K, V]{world: w, t: t, seed: seed, images: new(atomic.Int64), fs: crash.New(), opts: append([]Option{CheckpointAfter(0), small}, opts...)}
	for range writers {
		h := new(history)
		h.issue(state{})
		l.writers = append(l.writers, h)
	}
	return l
}

// modes are the ways to sync.
var modes = map[string][]Option{"every group": nil, "now and then": {SyncEvery(200 * time.Microsecond)}, "when asked": {NoSync()}}
