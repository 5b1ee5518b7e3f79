//go:build jayloop

package peers

import "github.com/jayloop/radix"

// jayloop/radix, a radix tree in arenas, is a peer on request: the module is not
// among those that this one requires, since not every proxy has it. It keeps no
// keys: these, and values of 64 bits, are in slices beside it, and an answer is
// compared with its key, as its documentation asks for. No key may be a prefix of
// another, so each ends with a byte 0.
//
//	go get github.com/jayloop/radix && go run -tags jayloop . run strings-tree

const nameJayloop = "jayloop/radix, keys beside"

func init() {
	moreTextStores = append(moreTextStores, TextStoreMaker{nameJayloop, func() TextStore {
		tree := radix.NewTree(&radix.Options{NumAllocators: 2}) // one of them for iterators, which would wait for it
		return &jayloopText{tree: tree, a: tree.GetAllocator()}
	}})
}

type jayloopText struct {
	heapBuilt
	tree *radix.Tree
	a    *radix.Allocator
	keys []string
	vals []uint64
	key  []byte
}

func (t *jayloopText) Name() string { return nameJayloop }

func (t *jayloopText) Close() {
	t.tree.ReleaseAllocator(t.a)
	*t = jayloopText{}
}

// ended returns a key as the tree has it, until the next call.
func (t *jayloopText) ended(key string) []byte {
	t.key = append(append(t.key[:0], key...), 0)
	return t.key
}

func (t *jayloopText) Set(keys []string, vals []uint64) error {
	for i, k := range keys {
		for !t.set(k, vals[i]) {
		}
	}
	return nil
}

// set reports false where it has to be tried again.
func (t *jayloopText) set(key string, val uint64) bool {
	found, op := t.a.PrepareUpdate(t.ended(key))
	if found {
		at := op.Value - 1
		if t.keys[at] == key {
			t.vals[at] = val
			op.Abort()
			return true
		}
		op.FetchedKey = append(append(op.FetchedKey[:0], t.keys[at]...), 0)
	}
	if !op.Finalize(uint64(len(t.keys) + 1)) {
		return false
	}
	t.keys, t.vals = append(t.keys, key), append(t.vals, val)
	return true
}

func (t *jayloopText) Get(q []string, vals []uint64, found []bool) (hits int) {
	for i, k := range q {
		vals[i], found[i] = 0, false
		if at, ok := t.a.Lookup(t.ended(k)); ok && t.keys[at-1] == k {
			vals[i], found[i] = t.vals[at-1], true
			hits++
		}
	}
	return hits
}

func (t *jayloopText) Each(q []string, vals []uint64, found []bool) int { return t.Get(q, vals, found) }

func (t *jayloopText) Scan() (n int, sum uint64) {
	for i := radix.NewIterator(t.tree, nil); i.Next(); {
		n++
		sum += t.vals[i.Value()-1]
	}
	return n, sum
}
