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

// underWay is how many searches of a bucket wait for memory at the same time.
const underWay = 32

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
	key   string
	at    link
	i     int32
	short bool // it has begun at a shortcut
}

// entrances is where the searches of a bucket begin.
type entrances struct {
	lines [bucketKeys]int
	tags  [bucketKeys]uint16
	links [bucketKeys]link
}

var entrancePool = sync.Pool{New: func() any { return new(entrances) }}

// find finds where searches begin: at shortcuts, or 0. ask asks for what the first step
// of search i from a link will read.
func (e *entrances) find(s *shortcuts, keys []string, ask func(l link, i int)) {
	simd.FetchStrings(keys)
	if s == nil {
		clear(e.links[:len(keys)])
		return
	}
	for i, key := range keys {
		if e.tags[i] = 0; len(key) >= s.depth {
			e.lines[i], e.tags[i] = s.spread(s.hash(key))
		}
	}
	simd.FetchEach(unsafe.Pointer(&s.lines[0]), e.lines[:len(keys)], int(unsafe.Sizeof(s.lines[0])))
	for i, tag := range e.tags[:len(keys)] {
		if e.links[i] = 0; tag != 0 {
			l := s.lines[e.lines[i]].get(tag)
			ask(l, i)
			e.links[i] = l
		}
	}
	runtime.KeepAlive(s)
}

// getBucket looks up keys, many at a time: while the next node of one is on its way
// from memory, the others take a step.
func (t *Tree) getBucket(keys []string, vals []uint64, found []bool, snap *Snapshot) (hits int) {
	e := entrancePool.Get().(*entrances)
	defer entrancePool.Put(e)
	s, root := t.short.Load(), load(&t.top.link)
	if snap != nil {
		s, root = nil, snap.moment.root
	}
	e.find(s, keys, func(l link, i int) { fetch(l, keys[i], s.depth) })
	var ring [underWay]query
	next, live := 0, 0
	begin := func(q *query) {
		*q = query{keys[next], e.links[next], int32(next), true}
		if q.at == 0 {
			q.at, q.short = root, false
		}
		next++
	}
	for live < underWay && next < len(keys) {
		begin(&ring[live])
		live++
	}
	for live > 0 {
		for j := 0; j < live; j++ {
			q := &ring[j]
			if q.at.isInner() {
				l, ok := through(q.at, q.key)
				if ok || snap != nil {
					fetch(l, q.key, int(q.at.header().depth)+1)
					q.at = l
					continue
				}
			}
			ok, sure := t.answer(q, s, vals, found, snap)
			if !sure && q.short {
				q.at, q.short = root, false
				continue
			}
			if ok {
				hits++
			}
			if next < len(keys) {
				begin(q)
				continue
			}
			live--
			*q = ring[live]
			j--
		}
	}
	return hits
}

// answer sets the result of a search that has come to a leaf, or has met a node
// that is being changed. sure is false for one that has to begin at the root.
func (t *Tree) answer(q *query, s *shortcuts, vals []uint64, found []bool, snap *Snapshot) (ok, sure bool) {
	switch {
	case q.short:
		if vals[q.i], ok, sure = t.valueBy(s, q.at, q.key); !sure {
			return false, false
		}
	case snap == nil && q.at.isInner():
		vals[q.i], ok = t.getFromRoot(q.key)
	default:
		vals[q.i], ok = t.valueOf(q.at, q.key)
	}
	found[q.i] = ok
	return ok, true
}

// fetch asks for what a step with a key through a link will read. depth is where
// the node most likely tells keys apart.
func fetch(l link, key string, depth int) {
	if l.isLeaf() {
		simd.PrefetchAt(unsafe.Pointer(l.leaf()), 1+(headBytes+len(key))>>6)
		return
	}
	at := l.at()
	switch kind := l.kind(); kind {
	case nothing:
	case node256:
		simd.PrefetchAt(at, 1)
		if depth < len(key) {
			simd.PrefetchAt(unsafe.Pointer(&(*inner256)(at).links[key[depth]]), 1)
		}
	case node48:
		simd.PrefetchAt(at, 4)
	default:
		simd.PrefetchAt(at, int(uintptr(at)&63+small[kind].size+63)>>6)
	}
}
