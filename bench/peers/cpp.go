package peers

import (
	"errors"
	"os/exec"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/cpp"
	"github.com/pando-index/pando/bench/data"
)

// eachCPP calls body for every C++ peer that is wanted and can be compiled here.
// For each of the others it prints a line with the reason.
func eachCPP(s *contest.Session, body func(lib cpp.Library, program string)) {
	for _, lib := range cpp.Libraries() {
		if !s.Wanted(lib.Name) {
			continue
		}
		path, err := cppPrograms.build(s, lib.Name, func(dir string) (string, error) { return lib.Build(dir, cppPrograms.flags...) })
		switch {
		case err == nil:
			body(lib, path)
		case errors.Is(err, exec.ErrNotFound):
			s.SkipOnce("%s: it is compiled here and now, and there is no C++ compiler on the PATH", lib.Name)
		case errors.Is(err, cpp.ErrNoLibrary):
			s.SkipOnce("%s: it is compiled here and now, and the compiler does not find %s", lib.Name, lib.From)
		default:
			s.SkipOnce("%s: %v", lib.Name, err)
		}
	}
}

// CPPMakers returns the C++ peers that can run here.
func CPPMakers[W data.Word](s *contest.Session) (out []Maker[W]) {
	eachCPP(s, func(lib cpp.Library, program string) {
		out = append(out, Maker[W]{Name: lib.Name, Peak: lib.Peak * data.PairBytes[W]() / 16, Build: func(d *data.Dataset[W]) (System[W], error) {
			m, err := cpp.Start[W](program)
			if err == nil {
				err = m.Load(d.Keys, d.Vals)
			}
			if err != nil {
				return nil, err
			}
			return &cppMap[W]{m: m, name: lib.Name, perEntry: float64(m.Bytes) / float64(len(d.Keys)), threads: 1}, nil
		}})
	})
	return out
}

// cppMap is a map in a process of its own: queries and answers go through
// pipes, outside of the time, which the process takes itself.
type cppMap[W data.Word] struct {
	m        *cpp.Map[W]
	name     string
	perEntry float64
	threads  int
	err      error
}

func (c *cppMap[W]) Name() string { return c.name }

func (c *cppMap[W]) BytesPerEntry() float64 { return c.perEntry }

func (c *cppMap[W]) Close() { c.m.Close() } // a failure has already ended the run

func (c *cppMap[W]) SetThreads(n int) error { c.threads = n; return nil }

func (c *cppMap[W]) Took() time.Duration { return c.m.Took }

func (c *cppMap[W]) Err() error { return c.err }

func (c *cppMap[W]) Get(q, vals []W, found []bool) (hits int) {
	hits, err := c.m.Get(q, vals, found, c.threads)
	c.err = errors.Join(c.err, err)
	return hits
}

// timed is a peer that takes its own time.
type timed interface {
	Took() time.Duration
	// Err returns why it can no longer answer, if so.
	Err() error
}

// CPPStores returns the C++ peers as maps that change.
func CPPStores(s *contest.Session) (out []StoreMaker) {
	eachCPP(s, func(lib cpp.Library, program string) {
		out = append(out, StoreMaker{lib.Name, lib.Peak, func() (Store, error) {
			m, err := cpp.Start[uint64](program)
			if err != nil {
				return nil, err
			}
			return &cppStore{cppMap[uint64]{m: m, name: lib.Name, threads: 1}}, nil
		}})
	})
	return out
}

// cppStore is the same as a store.
type cppStore struct{ cppMap[uint64] }

func (c *cppStore) Len() int { return c.m.Len }

func (c *cppStore) Set(keys, vals []uint64) error { return c.m.Set(keys, vals) }

func (c *cppStore) Load(keys, vals []uint64) error { return c.m.Load(keys, vals) }

// ClockOf returns the clock of a peer that takes its own time; nil: the
// benchmark's is right.
func ClockOf(peer any) func() time.Duration {
	if t, ok := peer.(timed); ok {
		return t.Took
	}
	return nil
}

// FailureOf returns why a peer could not answer, if it is one that can fail.
func FailureOf(peer any) error {
	if t, ok := peer.(timed); ok {
		return t.Err()
	}
	return nil
}
