package hbplus

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/par"
)

// The updates of the HB+-tree paper (section 5.6), on Pando's tree. Where the
// paper locks the last inner node, the leaf's word is locked here. A mirror in
// other memory takes the place of the GPU's.

// groupQueries is the number of queries that the paper's threads share at a
// time, pieceQueries the number that one of them takes.
const (
	groupQueries = 16 << 10
	pieceQueries = 256
)

// Queries is operations on a tree, of which those of one key may be done in any
// order.
type Queries[C bplus.Code] struct {
	Keys, Vals []C
	Gets       []bool // which of them look a key up and set Vals; nil for none
	Hits       int    // keys that were found
}

func (q *Queries[C]) get(t *bplus.Tree[C], i int) (hit bool) {
	q.Vals[i], hit = t.Get(q.Keys[i])
	return hit
}

// Asynchronous does queries as the paper's asynchronous method does: all
// workers make the changes that split no node, then one thread makes the others,
// group by group. It returns how many these were.
func Asynchronous[C bplus.Code](t *bplus.Tree[C], q *Queries[C], workers int) (later int, err error) {
	for lo := 0; lo < len(q.Keys); lo += groupQueries {
		rest, err := inPlace(t, q, lo, min(lo+groupQueries, len(q.Keys)), workers, nil)
		if err != nil {
			return later, err
		}
		for _, i := range rest {
			if _, _, err := t.Set(q.Keys[i], q.Vals[i]); err != nil {
				return later, err
			}
		}
		later += len(rest)
	}
	return later, nil
}

// inPlace does queries [lo, hi) as far as that takes no split, and returns the
// others. moved, unless nil, gets the leaves whose separators have changed.
func inPlace[C bplus.Code](t *bplus.Tree[C], q *Queries[C], lo, hi, workers int, moved func(bplus.Node)) ([]int, error) {
	var mu sync.Mutex
	var rest []int
	var failed error
	par.Run(workers, (hi-lo+pieceQueries-1)/pieceQueries, par.Func(func(p int) {
		var own []int
		hits := 0
		var err error
		for i := lo + p*pieceQueries; i < min(lo+(p+1)*pieceQueries, hi) && err == nil; i++ {
			if q.Gets != nil && q.Gets[i] {
				if q.get(t, i) {
					hits++
				}
				continue
			}
			var at bplus.Node
			var changed bool
			at, changed, err = t.SetInPlace(q.Keys[i], q.Vals[i])
			if errors.Is(err, bplus.ErrStructure) {
				own, err = append(own, i), nil
			}
			if changed && moved != nil {
				moved(at)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		rest, q.Hits, failed = append(rest, own...), q.Hits+hits, errors.Join(failed, err)
	}))
	return rest, failed
}

// Synchronous does queries as the paper's synchronous method does: a worker that
// changes an inner node puts it into a queue, and one thread brings the mirror up
// to date meanwhile. When it returns the mirror has all changes.
func Synchronous[C bplus.Code](t *bplus.Tree[C], m *Mirror[C], q *Queries[C], workers int) error {
	queue := make(chan bplus.Node, 4096)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range queue {
			m.update(t, n)
		}
	}()
	defer func() {
		close(queue)
		<-done
	}()
	var way []bplus.Node
	for lo := 0; lo < len(q.Keys); lo += groupQueries {
		rest, err := inPlace(t, q, lo, min(lo+groupQueries, len(q.Keys)), workers, func(n bplus.Node) { queue <- n })
		if err != nil {
			return err
		}
		for _, i := range rest {
			if _, _, err := t.Set(q.Keys[i], q.Vals[i]); err != nil {
				return err
			}
			way = t.Around(q.Keys[i], way[:0])
			for _, n := range way {
				queue <- n
			}
		}
	}
	return nil
}

// Mirror is a copy of a tree's inner nodes, which the paper keeps in the GPU's
// memory. One goroutine at a time may use it.
type Mirror[C bplus.Code] struct {
	leaves, uppers [][]byte // parts of mirrorPart nodes, made when needed
	copied         atomic.Int64
}

const mirrorPart = 512

// node returns where a node's copy lies.
func (m *Mirror[C]) node(n bplus.Node) []byte {
	parts, size := &m.leaves, bplus.NodeBytes[C](n)
	if n.Upper {
		parts = &m.uppers
	}
	p, i := int(n.Number/mirrorPart), int(n.Number%mirrorPart)
	for p >= len(*parts) {
		*parts = append(*parts, nil)
	}
	if (*parts)[p] == nil {
		(*parts)[p] = make([]byte, mirrorPart*size)
	}
	return (*parts)[p][i*size : (i+1)*size]
}

func (m *Mirror[C]) update(t *bplus.Tree[C], n bplus.Node) {
	t.CopyNode(n, m.node(n))
	m.copied.Add(1)
}

// CopyAll copies all inner nodes of a tree that nobody changes, as the paper's
// asynchronous method does after a batch, and returns their bytes.
func (m *Mirror[C]) CopyAll(t *bplus.Tree[C]) (size int64) {
	t.Inner(func(n bplus.Node) {
		m.update(t, n)
		size += int64(bplus.NodeBytes[C](n))
	})
	return size
}

// Copied returns the number of nodes copied so far.
func (m *Mirror[C]) Copied() int64 { return m.copied.Load() }

// Equal reports whether the mirror has every inner node of a tree that nobody
// changes as it is, but for the leaves' words.
func (m *Mirror[C]) Equal(t *bplus.Tree[C]) bool {
	const word, line = 56, 64
	same := true
	t.Inner(func(n bplus.Node) {
		now, then := make([]byte, bplus.NodeBytes[C](n)), m.node(n)
		t.CopyNode(n, now)
		same = same && bytes.Equal(now[:word], then[:word]) && bytes.Equal(now[line:], then[line:])
	})
	return same
}
