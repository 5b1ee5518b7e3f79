package main

import (
	"errors"
	"os/exec"
	"time"

	"github.com/pando-index/pando/bench/cpp"
)

// eachCPP calls body for every C++ peer that is wanted and can be compiled here.
// For each of the others it prints a line with the reason.
func eachCPP(s *session, body func(lib cpp.Library, program string)) {
	for _, lib := range cpp.Libraries() {
		if !s.wanted(lib.Name) {
			continue
		}
		path, err := cppPrograms.build(s, lib.Name, func(dir string) (string, error) { return lib.Build(dir, cppPrograms.flags...) })
		switch {
		case err == nil:
			body(lib, path)
		case errors.Is(err, exec.ErrNotFound):
			s.skipOnce("%s: it is compiled here and now, and there is no C++ compiler on the PATH", lib.Name)
		case errors.Is(err, cpp.ErrNoLibrary):
			s.skipOnce("%s: it is compiled here and now, and the compiler does not find %s", lib.Name, lib.From)
		default:
			s.skipOnce("%s: %v", lib.Name, err)
		}
	}
}

// cppMakers returns the C++ peers that can run here.
func cppMakers[W word](s *session) (out []maker[W]) {
	eachCPP(s, func(lib cpp.Library, program string) {
		out = append(out, maker[W]{name: lib.Name, peak: lib.Peak * pairBytes[W]() / 16, build: func(d *dataset[W]) (system[W], error) {
			m, err := cpp.Start[W](program)
			if err == nil {
				err = m.Load(d.keys, d.vals)
			}
			if err != nil {
				return nil, err
			}
			return &cppMap[W]{m: m, name: lib.Name, perEntry: float64(m.Bytes) / float64(len(d.keys)), threads: 1}, nil
		}})
	})
	return out
}

// cppMap is a map in a process of its own: queries and answers go through
// pipes, outside of the time, which the process takes itself.
type cppMap[W word] struct {
	m        *cpp.Map[W]
	name     string
	perEntry float64
	threads  int
	err      error
}

func (c *cppMap[W]) Name() string           { return c.name }
func (c *cppMap[W]) BytesPerEntry() float64 { return c.perEntry }
func (c *cppMap[W]) Close()                 { c.m.Close() } // a failure has already ended the run
func (c *cppMap[W]) SetThreads(n int) error { c.threads = n; return nil }
func (c *cppMap[W]) Took() time.Duration    { return c.m.Took }
func (c *cppMap[W]) Err() error             { return c.err }

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

// cppStores returns the C++ peers as maps that change.
func cppStores(s *session) (out []storeMaker) {
	eachCPP(s, func(lib cpp.Library, program string) {
		out = append(out, storeMaker{lib.Name, lib.Peak, func() (store, error) {
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

func (c *cppStore) Len() int                       { return c.m.Len }
func (c *cppStore) Set(keys, vals []uint64) error  { return c.m.Set(keys, vals) }
func (c *cppStore) Load(keys, vals []uint64) error { return c.m.Load(keys, vals) }

// clockOf returns the clock of a peer that takes its own time; nil: the
// benchmark's is right.
func clockOf(peer any) func() time.Duration {
	if t, ok := peer.(timed); ok {
		return t.Took
	}
	return nil
}

// failureOf returns why a peer could not answer, if it is one that can fail.
func failureOf(peer any) error {
	if t, ok := peer.(timed); ok {
		return t.Err()
	}
	return nil
}
