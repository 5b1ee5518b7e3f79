package values

import (
	"fmt"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
)

var wavesExp = &contest.Experiment{
	Name:     "values-waves",
	About:    "resident memory over ten waves of filling, overwriting with values of other sizes, and deleting",
	CaseName: "wave",
	Sizes:    []int{contest.Mega},
	Extra:    []contest.ExtraColumn{{Name: colFull, Format: contest.Number}, {Name: colOver, Format: contest.Number}, {Name: colEmpty, Format: contest.Number}},
	Run:      runWaves,
}

// The extra columns of waves: resident MiB after each part of a wave.
const (
	colFull  = "full MiB"
	colOver  = "overwritten MiB"
	colEmpty = "emptied MiB"
)

// waveSizes are the bytes of values, one size a wave in turn: values overwrite those of the
// size before.
var waveSizes = []int{32, 100, 333, 64, 1000}

func runWaves(s *contest.Session) error {
	const waves = 10
	for _, n := range s.Sizes {
		for _, m := range makers() {
			if m.Name != ours.NameTree && m.Name != ours.NameBoxes && m.Name != peers.NameGoMap {
				continue // caches drop entries rather than grow
			}
			if !roomFor(s, m.Name, n, 1000) {
				continue
			}
			st, err := m.Make(n, 1000)
			if err != nil {
				return err
			}
			for w := range waves {
				if err := wave(s, st, n, w); err != nil {
					st.Close()
					return err
				}
			}
			st.Close()
		}
		s.EndSet()
	}
	return nil
}

// wave fills a store, overwrites all values, and deletes nine of ten entries.
func wave(s *contest.Session, st peers.ByteStore, n, w int) error {
	s.Say("%s: wave %d", st.Name(), w+1)
	row := contest.NewRow(st.Name(), fmt.Sprint(w+1), n)
	row.Reference = st.Name() == ours.NameTree
	for i, column := range []string{colFull, colOver} {
		e := newEntries(n, waveSizes[(w+i)%len(waveSizes)], s.Seed)
		if err := e.fill(st); err != nil {
			return err
		}
		row.Set(column, float64(resident())/(1<<20))
	}
	e := newEntries(n, 8, s.Seed)
	for i := range e.keys {
		if i%10 == w%10 {
			continue
		}
		if err := st.Delete(e.keys[i : i+1]); err != nil {
			return err
		}
	}
	row.Set(colEmpty, float64(resident())/(1<<20))
	s.Add(row)
	return nil
}
