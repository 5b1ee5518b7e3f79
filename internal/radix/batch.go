package radix

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/shortcut"
)

// bucketKeys is the number of keys that are looked up together, and between two
// looks at the generation.
const bucketKeys = shortcut.Keys

// GetBatch sets vals[i] to the value of keys[i], or to 0, and found[i] to whether
// there is one. It returns the number of keys found. use, unless nil, is called with
// each span of values while the memory that they stand for is sure to be there; it
// may be called again for the same span.
func (t *Tree) GetBatch(keys []string, vals []uint64, found []bool, workers int, use func(lo, hi int)) (hits int) {
	t.rw.RLock()
	defer t.rw.RUnlock()
	defer t.edges.AcquireAll()
	var sum atomic.Int64
	par.Run(workers, (len(keys)+bucketKeys-1)/bucketKeys, par.Func(func(p int) {
		lo, hi := p*bucketKeys, min((p+1)*bucketKeys, len(keys))
		var patience epoch.Patience
		for {
			gen := patience.Begin(&t.Clock)
			k := t.getBucket(keys[lo:hi], vals[lo:hi], found[lo:hi], nil)
			if use != nil {
				use(lo, hi)
			}
			if t.Current(gen) || t.Closed() {
				patience.Done()
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

// bucket is the state of searches for some keys that are under way.
type bucket struct {
	shortcut.Bucket[link]
	queries [bucketKeys]query
}

var bucketPool = sync.Pool{New: func() any { return &bucket{Bucket: shortcut.Bucket[link]{Asked: shortcut.Room()}} }}

// askStep adds the lines that a step with a key through a link will read. depth is where the
// node most likely tells keys apart.
func askStep(a *shortcut.Asks, l link, key string, depth int) {
	if l.isLeaf() {
		a.Add(unsafe.Pointer(l.leaf()), 1+min(headBytes+len(key), mostAsked)>>6)
		return
	}
	at := l.at()
	switch kind := l.kind(); kind {
	case nothing:
	case node256:
		a.Add(at, 1)
		if depth < len(key) {
			a.Add(unsafe.Pointer(&(*inner256)(at).links[key[depth]]), 1)
		}
	case node48:
		a.Add(at, 4)
	default:
		a.Add(at, int(uintptr(at)&63+small[kind].size+63)>>6)
	}
}

// mostAsked is how many bytes of a leaf are asked for at most. More of 256 searches would
// be too much for a core's cache.
const mostAsked = 1 << 8

// getBucket looks up keys together: all take a step, then the lines of their next
// steps are prefetched.
func (t *Tree) getBucket(keys []string, vals []uint64, found []bool, snap *Snapshot) (hits int) {
	e := bucketPool.Get().(*bucket)
	defer bucketPool.Put(e)
	s, root := t.short.Load(), load(&t.top.link)
	if snap != nil {
		s, root = nil, snap.moment.root
	}
	e.Find(s, keys, func(l link, i int) { askStep(&e.Asked, l, keys[i], s.Depth) })
	for i, l := range e.Links[:len(keys)] {
		if e.queries[i] = (query{l, int32(i), true}); l == 0 {
			e.queries[i] = query{root, int32(i), false}
		}
	}
	for live := e.queries[:len(keys)]; len(live) > 0; e.Asked.Fetch() {
		n := 0 // how many go on
		for _, q := range live {
			key := keys[q.i]
			if q.at.isInner() {
				l, ok := through(q.at, key)
				if ok || snap != nil {
					askStep(&e.Asked, l, key, int(q.at.header().depth)+1)
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
func (t *Tree) answer(q *query, key string, s *shortcut.Table, vals []uint64, found []bool, snap *Snapshot) (ok, sure bool) {
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

// fetch prefetches the lines that a step with a key through a link will read.
func fetch(l link, key string, depth int) { askStep(nil, l, key, depth) }
