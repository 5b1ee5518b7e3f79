package fast

import (
	"fmt"
	"math/bits"
	"runtime/debug"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/work"
)

var keySize = &contest.Experiment{
	Name:     "key-size",
	About:    "ranks of keys of 4 to 128 bytes, 10 values a byte, compressed and in full, beside 4-byte numbers; --n is the bytes of all keys together",
	Figure:   "fig. 10 of the " + contest.Paper10,
	Per:      "one rank of a key that is there",
	CaseName: "bytes a key",
	Sizes:    []int{1 << 30},
	Faster:   "x uint32",
	Extra:    []contest.ExtraColumn{{Name: colOver4, Format: contest.Ratio}, {Name: colOverFull, Format: contest.Ratio}},
	Run:      runKeySize,
}

const (
	nameUint32   = "Pando blocked, uint32"
	nameFullKeys = "full keys, blocked"

	colOver4    = "x 4 bytes"   // speed relative to the same system with keys of 4 bytes
	colOverFull = "x full keys" // speed relative to full keys of that size
)

var keySizes = []int{4, 8, 16, 32, 64, 128}

func runKeySize(s *contest.Session) error {
	for _, bytes := range s.Sizes {
		first := len(s.Rows)
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
		compareTo4(s.Rows[first:])
	}
	s.CompareTo(colOverFull, func(r *contest.Row) bool { return r.System == nameFullKeys },
		func(a, b *contest.Row) bool { return a.Beside(b) })
	return nil
}

// compareTo4 compares each row with that of the same system for 4-byte keys.
func compareTo4(rows []*contest.Row) {
	for _, r := range rows {
		for _, b := range rows {
			if b.Case == "4" && b.System == r.System {
				r.Set(colOver4, b.Median/r.Median)
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
	set ours.FrozenSet[uint32]
	*work.Ranks[uint32]
}

func withUint32(s *contest.Session, bytes int, body func(*uint32Reference) error) error {
	n := keysOf(bytes, 4)
	if !s.Room(nameUint32, n, 3*data.KeyBytesU32, "use a smaller --n") {
		return nil
	}
	s.Say("building %s, %s ...", nameUint32, contest.SizeText(n))
	d := &data.Dataset[uint32]{Keys: data.SortedKeys[uint32](n, s.Seed)}
	set, err := ours.OpenSetBlocked(nameUint32, d.Keys)
	if err != nil {
		return err
	}
	defer set.Close()
	return body(&uint32Reference{set, work.NewRanks(s, d)})
}

// subject returns the reference as a subject.
func (u *uint32Reference) subject() (*contest.Subject, error) {
	sub, err := u.Batches(nameUint32, u.set.BytesPerEntry(), u.set, 1)
	if err == nil {
		sub.Reference = true
	}
	return sub, err
}

func keySizeContest(s *contest.Session, ref *uint32Reference, size, n int) error {
	// During generation: bytes, string and number of each key; then one
	// system.
	if !s.Room(fmt.Sprintf("keys of %d bytes", size), n, float64(size+data.StringHeader+8)+float64(2*max(size, 8)), "use a smaller --n") {
		return nil
	}
	s.Say("making %s keys of %d bytes ...", contest.SizeText(n), size)
	r := work.NewTextRanks(s, keysOfSize(n, size, s.Seed))
	sub, err := ref.subject()
	if err != nil {
		return err
	}
	c := &contest.Contest{N: n, Threads: 1, Label: fmt.Sprint(size), Ops: s.Queries, Subjects: []*contest.Subject{sub}}
	c.Fresh = func(round int) {
		data.DrawPieces(s.Seed, uint64(round+1), ref.Q, ref.D.Hits)
		r.Draw(s.Seed, round)
	}
	s.Say("building %s ...", nameFullKeys)
	full, err := buildFullKeys(r.T.Keys)
	if err != nil {
		return err
	}
	defer full.Close()
	s.Say("building %s ...", contest.Pando)
	set, err := ours.OpenTextSet(r.T.Keys)
	if err != nil {
		return err
	}
	defer set.Close()
	c.Subjects = append(c.Subjects, r.Subject(contest.Pando, set.BytesPerEntry(), set), r.Subject(nameFullKeys, full.bytes(), full))
	if err := s.Compete(c); err != nil {
		return err
	}
	s.Latest(c)[0].N = len(ref.D.Keys)
	return nil
}

// keysOfSize makes keys with ten values per byte, except for 4 bytes: that
// would be 10,000 distinct keys, so all values are used.
func keysOfSize(n, size int, seed uint64) *data.Texts {
	values := 10
	if size == 4 {
		values = 256
	}
	return &data.Texts{Keys: data.DigitTexts(n, size, values, seed), Mean: float64(size)}
}
