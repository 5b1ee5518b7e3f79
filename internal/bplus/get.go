package bplus

import (
	"sync"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/stall"
)

// bucketKeys is the number of keys that are looked up together.
const bucketKeys = 4096

// GetBatch sets vals[i] to the value of keys[i], or to 0, and found[i], where
// found is not nil, to whether there is one. It returns the number of keys found.
// vals must not overlap keys. use, unless nil, is called with each span of values
// while the memory that they stand for is sure to be there; it may be called
// again for the same span.
func (t *Tree[C]) GetBatch(keys, vals []C, found []bool, workers int, use func(lo, hi int)) (hits int) {
	t.rw.RLock()
	defer t.rw.RUnlock()
	defer t.edges.AcquireAll()
	if len(keys) <= bucketKeys || workers <= 1 {
		for lo := 0; lo < len(keys); lo += bucketKeys {
			hits += t.getBucket(keys, vals, found, lo, use)
		}
		return hits
	}
	var mu sync.Mutex
	par.Run(workers, (len(keys)+bucketKeys-1)/bucketKeys, par.Func(func(p int) {
		n := t.getBucket(keys, vals, found, p*bucketKeys, use)
		mu.Lock()
		hits += n
		mu.Unlock()
	}))
	return hits
}

// getBucket looks up the keys of the bucket that begins with key lo.
func (t *Tree[C]) getBucket(keys, vals []C, found []bool, lo int, use func(lo, hi int)) (hits int) {
	hi := min(lo+bucketKeys, len(keys))
	keys, vals = keys[lo:hi], vals[lo:hi]
	if found != nil {
		found = found[lo:hi]
	}
	var again [bucketKeys]int32
	var p epoch.Patience
	for {
		gen, r := p.Begin(&t.Clock), t.view()
		hits, repeat := simd.GetRegular(&r, keys, vals, found, again[:])
		for _, i := range again[:repeat] {
			v, ok := t.getOne(keys[i])
			vals[i] = v
			if found != nil {
				found[i] = ok
			}
			if ok {
				hits++
			}
		}
		stall.At("get batch: values read")
		if use != nil {
			use(lo, hi)
		}
		if t.Current(gen) || t.Closed() {
			p.Done()
			return hits
		}
	}
}
