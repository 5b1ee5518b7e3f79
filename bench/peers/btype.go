//go:build btype

package peers

import "github.com/tidwall/btype"

// tidwall/btype is a peer on request: the module is not among those that this
// one requires, since not every proxy has it.
//
//	go get github.com/tidwall/btype && go run -tags btype . run set-random

const nameBType = "tidwall/btype Map"

func init() {
	moreStores = append(moreStores, StoreMaker{nameBType, 64, func() (Store, error) { return &btypeStore{new(btype.Map[uint64, uint64])}, nil }})
	moreTextStores = append(moreTextStores, TextStoreMaker{nameBType, func() TextStore { return &btypeText{tree: new(btype.Map[string, uint64])} }})
}

type btypeStore struct{ tree *btype.Map[uint64, uint64] }

func (t *btypeStore) Name() string { return nameBType }

func (t *btypeStore) Len() int { return t.tree.Len() }

func (t *btypeStore) Close() { t.tree = nil }

func (t *btypeStore) Load(keys, vals []uint64) error {
	for i, k := range keys {
		t.tree.PushBack(k, vals[i])
	}
	return nil
}

func (t *btypeStore) Set(keys, vals []uint64) error {
	for i, k := range keys {
		t.tree.Set(k, vals[i])
	}
	return nil
}

func (t *btypeStore) Get(q, vals []uint64, found []bool) (hits int) {
	for i, k := range q {
		if vals[i], found[i] = t.tree.Get(k); found[i] {
			hits++
		}
	}
	return hits
}

func (t *btypeStore) Delete(keys []uint64) (deleted int) {
	for _, k := range keys {
		if _, ok := t.tree.Delete(k); ok {
			deleted++
		}
	}
	return deleted
}

func (t *btypeStore) Scan() (keySum, valSum uint64) {
	for k, v := range t.tree.All() {
		keySum, valSum = keySum+k, valSum+v
	}
	return keySum, valSum
}

func (t *btypeStore) Walk(from uint64, n int) (keySum, valSum uint64) {
	for k, v := range t.tree.Ascend(from) {
		keySum, valSum = keySum+k, valSum+v
		if n--; n == 0 {
			break
		}
	}
	return keySum, valSum
}

type btypeText struct {
	heapBuilt
	tree *btype.Map[string, uint64]
}

func (t *btypeText) Name() string { return nameBType }

func (t *btypeText) Close() { t.tree = nil }

func (t *btypeText) Set(keys []string, vals []uint64) error {
	for i, k := range keys {
		t.tree.Set(k, vals[i])
	}
	return nil
}

func (t *btypeText) Get(q []string, vals []uint64, found []bool) (hits int) {
	for i, k := range q {
		if vals[i], found[i] = t.tree.Get(k); found[i] {
			hits++
		}
	}
	return hits
}

func (t *btypeText) Each(q []string, vals []uint64, found []bool) int { return t.Get(q, vals, found) }

func (t *btypeText) Scan() (n int, sum uint64) {
	for _, v := range t.tree.All() {
		n++
		sum += v
	}
	return n, sum
}
