package main

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
)

var stringsTree = &experiment{
	name:     "strings-tree",
	about:    "strings in maps that can be changed: Set from an empty map on, Get, GetBatch, all in order, bytes an entry",
	per:      "one key",
	caseName: "keys, work",
	sizes:    []int{mega},
	run:      runStringsTree,
}

// treeTextKinds are the keys of strings-tree.
var treeTextKinds = []textKind{
	{"URLs", 60, urls},
	{"words", 10, spoken},
	{"UUIDs", uuidBytes, uuids},
	{"8 bytes", 8, func(n int, seed uint64) []string { return hashes(n, 8, seed) }},
	{"32 bytes", 32, func(n int, seed uint64) []string { return hashes(n, 32, seed) }},
}

// hashes returns random keys of a size: all bytes for 8, hexadecimal digits for 32.
func hashes(n, size int, seed uint64) []string {
	first := sortedKeys[uint64](n, seed)
	return fixedTexts(n, size, seed, func(dst []byte, i int, rng *rand.Rand) {
		var raw [16]byte
		binary.BigEndian.PutUint64(raw[:], first[i])
		binary.BigEndian.PutUint64(raw[8:], rng.Uint64())
		if size == 8 {
			copy(dst, raw[:])
			return
		}
		hex.Encode(dst, raw[:])
	})
}

// spoken returns what looks like words: syllables, more than it takes to tell them
// apart.
func spoken(n int, seed uint64) []string {
	const vowels, consonants = "aeiou", "bcdfghklmnprstvz"
	numbers := below(sortedKeys[uint64](n, seed), 80*80*80*80*80) // of five syllables
	return fixedTexts(n, 10, seed, func(dst []byte, i int, _ *rand.Rand) {
		k := numbers[i]
		for at := 8; at >= 0; at -= 2 {
			dst[at], dst[at+1] = consonants[k%80/5], vowels[k%5]
			k /= 80
		}
	})
}

// textStore is a map of strings that can be changed.
type textStore interface {
	textSystem
	// Set makes one call a key.
	Set(keys []string, vals []uint64) error
	// Each makes one call of Get a key.
	Each(q []string, vals []uint64, found []bool) (hits int)
	// Scan goes through all entries in key order.
	Scan() (entries int, sum uint64)
}

type textStoreMaker struct {
	name string
	make func() textStore
}

func runStringsTree(s *session) error { return eachTreeTexts(s, 3, 4, textStoreContests) }

// eachTreeTexts calls f with keys of each size and kind, if there is room for the given
// numbers of copies of them and of maps.
func eachTreeTexts(s *session, copies, maps float64, f func(s *session, t *texts) error) error {
	for _, n := range s.sizes {
		for _, kind := range treeTextKinds {
			debug.FreeOSMemory()
			if !s.room(kind.label, n, copies*(kind.bytes+stringHeader+textValue)+maps*100, "use a smaller --n") {
				continue
			}
			if err := f(s, newTexts(s, kind, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// textStoreContests fills maps in random order, and then reads them.
func textStoreContests(s *session, t *texts) error {
	f := newTextFill(s, t)
	set := &contest{n: len(t.keys), threads: 1, label: t.label + ", Set", ops: len(t.keys)}
	var stores []textStore
	for i, m := range textStores() {
		st, err := f.fill(m)
		if err != nil {
			return err
		}
		stores = append(stores, st)
		set.subjects = append(set.subjects, f.sets(m, st.BytesPerEntry(), i == 0))
	}
	defer func() {
		for _, st := range stores {
			st.Close()
		}
	}()
	if err := s.compete(set); err != nil {
		return err
	}
	frozen, err := freezeTexts(t, "Pando Frozen", 1)
	if err != nil {
		return err
	}
	defer frozen.Close()
	return readTextStores(s, t, frozen, stores)
}

// readTextStores measures Get, GetBatch and Scan.
func readTextStores(s *session, t *texts, frozen *frozenText, stores []textStore) error {
	l := newTextLookups(s, t)
	fresh := func(round int) { l.draw(s.seed, round) }
	one := &contest{n: len(t.keys), threads: 1, label: t.label + ", Get", ops: s.queries, fresh: fresh}
	batch := &contest{n: len(t.keys), threads: 1, label: t.label + ", GetBatch", ops: s.queries, fresh: fresh}
	scan := &contest{n: len(t.keys), threads: 1, label: t.label + ", scan", ops: len(t.keys)}
	for i, st := range append(stores, textStore(&frozenTextStore{frozen})) {
		if i < len(stores) {
			one.subjects = append(one.subjects, l.subject(each{st}))
		}
		if i == 0 || i == len(stores) || st.Name() == nameTextPages {
			batch.subjects = append(batch.subjects, l.subject(st))
		}
		if st.Name() != nameGoMap {
			scan.subjects = append(scan.subjects, textScan(t, st))
		}
	}
	for _, c := range []*contest{one, batch, scan} {
		c.subjects[0].reference = true
		if err := s.compete(c); err != nil {
			return err
		}
	}
	return nil
}

// each is a store that is asked key by key.
type each struct{ textStore }

func (e each) Get(q []string, vals []uint64, found []bool) int { return e.Each(q, vals, found) }

func textScan(t *texts, st textStore) *subject {
	want := uint64(0)
	for _, v := range t.vals {
		want += v
	}
	var entries int
	var sum uint64
	return &subject{
		system: st.Name(), whole: true,
		do: func(int) error { entries, sum = st.Scan(); return nil },
		check: func(int) error {
			if entries != len(t.keys) || sum != want {
				return fmt.Errorf("%d entries with sum %d; they should be %d with %d", entries, sum, len(t.keys), want)
			}
			return nil
		},
	}
}

// textFill is keys in random order.
type textFill struct {
	t    *texts
	keys []string
	vals []uint64
}

func newTextFill(s *session, t *texts) *textFill {
	f := &textFill{t: t, keys: make([]string, len(t.keys)), vals: make([]uint64, len(t.keys))}
	for i, at := range newRand(s.seed, streamTexts).Perm(len(t.keys)) {
		f.keys[i], f.vals[i] = t.keys[at], t.vals[at]
	}
	return f
}

// fill makes a store of all keys.
func (f *textFill) fill(m textStoreMaker) (st textStore, err error) {
	grown := heapGrowth(func() {
		st = m.make()
		err = st.Set(f.keys, f.vals)
	})
	if h, ok := st.(interface{ weigh(perEntry float64) }); ok {
		h.weigh(grown/float64(len(f.keys)) + f.t.mean)
	}
	return st, err
}

// sets is the work of filling an empty store.
func (f *textFill) sets(m textStoreMaker, perEntry float64, reference bool) *subject {
	var st textStore
	return &subject{
		system: m.name, bytes: perEntry, reference: reference, whole: true,
		do: func(int) error { st = m.make(); return st.Set(f.keys, f.vals) },
		check: func(int) error {
			if n, _ := st.Scan(); n != len(f.keys) {
				return fmt.Errorf("%d entries of %d", n, len(f.keys))
			}
			return nil
		},
		reset: func() {
			st.Close()
			st = nil
			runtime.GC()
		},
	}
}
