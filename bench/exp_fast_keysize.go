package main

import (
	"fmt"
	"math/bits"
	"runtime/debug"
)

var keySize = &experiment{
	name:     "key-size",
	about:    "ranks of keys of 4 to 128 bytes, 10 values a byte, compressed and in full, beside 4-byte numbers; --n is the bytes of all keys together",
	figure:   "fig. 10 of the " + paper10,
	per:      "one rank of a key that is there",
	caseName: "bytes a key",
	sizes:    []int{1 << 30},
	faster:   "x uint32",
	extra:    []extraColumn{{colOver4, ratio}, {colOverFull, ratio}},
	run:      runKeySize,
}

const (
	namePandoBlocked = "Pando blocked"
	nameUint32       = "Pando blocked, uint32"
	nameFullKeys     = "full keys, blocked"

	colOver4    = "x 4 bytes"   // speed relative to the same system with keys of 4 bytes
	colOverFull = "x full keys" // speed relative to full keys of that size
)

var keySizes = []int{4, 8, 16, 32, 64, 128}

func runKeySize(s *session) error {
	for _, bytes := range s.sizes {
		first := len(s.rows)
		if err := withUint32(s, bytes, func(ref *uint32Reference) error {
			for _, size := range keySizes {
				debug.FreeOSMemory() // frees the memory of the previous size
				if err := keySizeContest(s, ref, size, keysOf(bytes, size)); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		compareTo4(s.rows[first:])
	}
	s.compareTo(colOverFull, func(r *row) bool { return r.System == nameFullKeys },
		func(a, b *row) bool { return a.group == b.group })
	return nil
}

// compareTo4 compares each row with that of the same system for 4-byte keys.
func compareTo4(rows []*row) {
	for _, r := range rows {
		for _, b := range rows {
			if b.Case == "4" && b.System == r.System {
				r.set(colOver4, b.Median/r.Median)
			}
		}
	}
}

// keysOf returns how many keys of the given size take about the given bytes:
// the next lower power of two less one, so that a tree of full keys has no
// gaps.
func keysOf(bytes, size int) int { return max(1, 1<<bits.Len(uint(bytes/size))/2-1) }

// uint32Reference is what all sizes are compared with, in the same rounds.
type uint32Reference struct {
	set frozenSet[uint32]
	*ranks[uint32]
}

func withUint32(s *session, bytes int, body func(*uint32Reference) error) error {
	n := keysOf(bytes, 4)
	if !s.room(nameUint32, n, 3*keyBytesU32, "use a smaller --n") {
		return nil
	}
	s.say("building %s, %s ...", nameUint32, sizeText(n))
	d := &dataset[uint32]{keys: sortedKeys[uint32](n, s.seed)}
	set, err := openSetBlocked(nameUint32, d.keys)
	if err != nil {
		return err
	}
	defer set.Close()
	return body(&uint32Reference{set, newRanks(s, d)})
}

// subject returns the reference as a subject.
func (u *uint32Reference) subject() (*subject, error) {
	sub, err := u.batches(nameUint32, u.set.BytesPerEntry(), u.set, 1)
	if err == nil {
		sub.reference = true
	}
	return sub, err
}

func keySizeContest(s *session, ref *uint32Reference, size, n int) error {
	// During generation: bytes, string and number of each key; then one
	// system.
	if !s.room(fmt.Sprintf("keys of %d bytes", size), n, float64(size+stringHeader+8)+float64(2*max(size, 8)), "use a smaller --n") {
		return nil
	}
	s.say("making %s keys of %d bytes ...", sizeText(n), size)
	r := newTextRanks(s, keysOfSize(n, size, s.seed))
	sub, err := ref.subject()
	if err != nil {
		return err
	}
	c := &contest{n: n, threads: 1, label: fmt.Sprint(size), ops: s.queries, subjects: []*subject{sub}}
	c.fresh = func(round int) {
		drawPieces(s.seed, uint64(round+1), ref.q, ref.d.hits)
		r.draw(s.seed, round)
	}
	s.say("building %s ...", nameFullKeys)
	full, err := buildFullKeys(r.t.keys)
	if err != nil {
		return err
	}
	defer full.Close()
	s.say("building %s ...", namePando)
	set, err := openTextSet(r.t.keys)
	if err != nil {
		return err
	}
	defer set.Close()
	c.subjects = append(c.subjects, r.subject(namePando, set.BytesPerEntry(), set), r.subject(nameFullKeys, full.bytes(), full))
	if err := s.compete(c); err != nil {
		return err
	}
	s.latest(c)[0].N = len(ref.d.keys)
	return nil
}

// keysOfSize makes keys with ten values per byte, except for 4 bytes: that
// would be 10,000 distinct keys, so all values are used.
func keysOfSize(n, size int, seed uint64) *texts {
	values := 10
	if size == 4 {
		values = 256
	}
	return &texts{keys: digitTexts(n, size, values, seed), mean: float64(size)}
}

// textRanks is a contest of batches of Rank over strings, some of which may be
// equal.
type textRanks struct {
	*textQueries
	ranks []int
}

func newTextRanks(s *session, t *texts) *textRanks {
	return &textRanks{newTextQueries(t, s.queries), make([]int, s.queries)}
}

// textRanker counts the keys below each query.
type textRanker interface{ Rank(q []string, ranks []int) }

func (r *textRanks) subject(name string, bytes float64, sys textRanker) *subject {
	return &subject{
		system: name,
		bytes:  bytes,
		do:     func(ops int) error { sys.Rank(r.q[:ops], r.ranks[:ops]); return nil },
		check:  r.check,
	}
}

// check checks every answer and wipes it: the rank is that of the first of
// equal keys.
func (r *textRanks) check(ops int) error {
	keys := r.t.keys
	for i, at := range r.at[:ops] {
		want := int(at)
		for want > 0 && keys[want-1] == keys[at] {
			want--
		}
		if r.ranks[i] != want {
			return fmt.Errorf("wrong rank of key %q: %d; it should be %d", r.q[i], r.ranks[i], want)
		}
		r.ranks[i] = -1
	}
	return nil
}
