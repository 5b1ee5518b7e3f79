package radix

import (
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
)

// bucketKeys is the number of keys that are looked up together, and between two
// looks at the generation.
const bucketKeys = 256

// GetBatch sets vals[i] to the value of keys[i], or to 0, and found[i] to whether
// there is one. It returns the number of keys found. use, unless nil, is called with
// each span of values while what they stand for is sure to be there; it may be
// called again for the same span.
func (t *Tree) GetBatch(keys []string, vals []uint64, found []bool, workers int, use func(lo, hi int)) (hits int) {
	t.lockRead()
	defer t.unlockRead()
	defer acquiredAll(t)
	var sum atomic.Int64
	par.Run(workers, (len(keys)+bucketKeys-1)/bucketKeys, par.Func(func(p int) {
		lo, hi := p*bucketKeys, min((p+1)*bucketKeys, len(keys))
		for {
			gen := t.Gen()
			k := t.getBucket(keys[lo:hi], vals[lo:hi], found[lo:hi], nil)
			if use != nil {
				use(lo, hi)
			}
			if t.Current(gen) || t.closed.Load() {
				sum.Add(int64(k))
				return
			}
		}
	}))
	return int(sum.Load())
}

// GetBatch is that of the tree at the snapshot's moment.
func (s *Snapshot) GetBatch(keys []string, vals []uint64, found []bool, workers int) (hits int) {
	var sum atomic.Int64
	par.Run(workers, (len(keys)+bucketKeys-1)/bucketKeys, par.Func(func(p int) {
		lo, hi := p*bucketKeys, min((p+1)*bucketKeys, len(keys))
		sum.Add(int64(s.tree.getBucket(keys[lo:hi], vals[lo:hi], found[lo:hi], s)))
	}))
	return int(sum.Load())
}

// query is a search under way.
type query struct {
	at    link
	i     int32
	short bool // it has begun at a shortcut
}

// bucket is what the searches of some keys need while they are under way.
type bucket struct {
	lines   [bucketKeys]int
	tags    [bucketKeys]uint16
	links   [bucketKeys]link // where they begin: at shortcuts, or 0
	queries [bucketKeys]query
	asked   asks
}

var bucketPool = sync.Pool{New: func() any { return &bucket{asked: asks{make([]int, 0, 4*bucketKeys)}} }}

// asks is the cache lines that the next steps of some searches will read. All of them are asked
// for in a loop that does nothing else: then the machine finds out where many of them lie at
// a time. Between the steps of searches it would do that for one after the other, and a tree has
// more pages than the machine remembers.
type asks struct{ lines []int }

// add adds some lines. For a search that is alone a is nil, and they are asked for at once.
func (a *asks) add(at unsafe.Pointer, lines int) {
	if a == nil {
		simd.PrefetchAt(at, lines)
		return
	}
	for i := range lines {
		a.lines = append(a.lines, int(uintptr(at))+i*64)
	}
}

// step adds what a step with a key through a link will read. depth is where the node most
// likely tells keys apart.
func (a *asks) step(l link, key string, depth int) {
	if l.isLeaf() {
		a.add(unsafe.Pointer(l.leaf()), 1+min(headBytes+len(key), mostAsked)>>6)
		return
	}
	at := l.at()
	switch kind := l.kind(); kind {
	case nothing:
	case node256:
		a.add(at, 1)
		if depth < len(key) {
			a.add(unsafe.Pointer(&(*inner256)(at).links[key[depth]]), 1)
		}
	case node48:
		a.add(at, 4)
	default:
		a.add(at, int(uintptr(at)&63+small[kind].size+63)>>6)
	}
}

// mostAsked is how many bytes of a leaf are asked for at most. More of 256 searches would
// be too much for a core's cache.
const mostAsked = 1 << 8

// fetch asks for the lines, and reports whether there are any.
func (a *asks) fetch() bool {
	n := len(a.lines)
	simd.FetchEach(nil, a.lines, 1)
	a.lines = a.lines[:0]
	return n > 0
}

// find finds where searches begin, and asks for what they will read there: ask adds what
// the first step of search i will read from link l on, which may be 0.
func (e *bucket) find(s *shortcuts, keys []string, ask func(l link, i int)) {
	simd.FetchStrings(keys)
	if s == nil {
		clear(e.links[:len(keys)])
		return
	}
	e.place(s, keys)
	for i, tag := range e.tags[:len(keys)] {
		if e.links[i] = 0; tag != 0 {
			l := s.lines[e.lines[i]].get(tag)
			ask(l, i)
			e.links[i] = l
		}
	}
	e.asked.fetch()
	runtime.KeepAlive(s)
}

// place sets lines and tags to the places of keys in the table, and asks for these. The tag
// of a key that is too short is 0.
func (e *bucket) place(s *shortcuts, keys []string) {
	for i, key := range keys {
		if e.tags[i] = 0; len(key) >= s.depth {
			e.lines[i], e.tags[i] = s.spread(s.hash(key))
		}
	}
	simd.FetchEach(unsafe.Pointer(&s.lines[0]), e.lines[:len(keys)], int(unsafe.Sizeof(s.lines[0])))
}

// getBucket looks up keys together: all take a step, then what their next steps will
// read is asked for.
func (t *Tree) getBucket(keys []string, vals []uint64, found []bool, snap *Snapshot) (hits int) {
	e := bucketPool.Get().(*bucket)
	defer bucketPool.Put(e)
	s, root := t.short.Load(), load(&t.top.link)
	if snap != nil {
		s, root = nil, snap.moment.root
	}
	e.find(s, keys, func(l link, i int) { e.asked.step(l, keys[i], s.depth) })
	for i, l := range e.links[:len(keys)] {
		if e.queries[i] = (query{l, int32(i), true}); l == 0 {
			e.queries[i] = query{root, int32(i), false}
		}
	}
	for live := e.queries[:len(keys)]; len(live) > 0; e.asked.fetch() {
		n := 0 // how many go on
		for _, q := range live {
			key := keys[q.i]
			if q.at.isInner() {
				l, ok := through(q.at, key)
				if ok || snap != nil {
					e.asked.step(l, key, int(q.at.header().depth)+1)
					live[n] = query{l, q.i, q.short}
					n++
					continue
				}
			}
			ok, sure := t.answer(&q, key, s, vals, found, snap)
			if !sure && q.short {
				live[n] = query{root, q.i, false}
				n++
				continue
			}
			if ok {
				hits++
			}
		}
		live = live[:n]
	}
	return hits
}

// answer sets the result of a search that has come to a leaf, or has met a node
// that is being changed. sure is false for one that has to begin at the root.
func (t *Tree) answer(q *query, key string, s *shortcuts, vals []uint64, found []bool, snap *Snapshot) (ok, sure bool) {
	switch {
	case q.short:
		if vals[q.i], ok, sure = t.valueBy(s, q.at, key); !sure {
			return false, false
		}
	case snap == nil && q.at.isInner():
		vals[q.i], ok = t.getFromRoot(key)
	default:
		vals[q.i], ok = t.valueOf(q.at, key)
	}
	found[q.i] = ok
	return ok, true
}

// fetch asks at once for what a step with a key through a link will read.
func fetch(l link, key string, depth int) { (*asks)(nil).step(l, key, depth) }
