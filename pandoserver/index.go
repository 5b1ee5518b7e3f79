package pandoserver

import (
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"time"

	"github.com/pando-index/pando"
)

// served is an index with its name.
type served struct {
	number int
	name   string
	src    Source
	live   live // if it can be changed

	mu    sync.Mutex
	asked *asked // how long it is, if that is being found out
}

// asked is the answer of an index on how many entries it has.
type asked struct {
	done chan struct{}
	n    int
	ok   bool
}

// soonEnough is how long INFO and metrics wait for an index that is on other machines.
const soonEnough = 3 * time.Second

// length returns how many entries an index has, and false if it cannot tell, or not within a time.
func (d *served) length(within time.Duration, log *slog.Logger) (n int, ok bool) {
	d.mu.Lock()
	a := d.asked
	if a == nil {
		a = &asked{done: make(chan struct{})}
		d.asked = a
		go d.count(a, log)
	}
	d.mu.Unlock()
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-a.done:
		return a.n, a.ok
	case <-late.C:
		return 0, false
	}
}

// count finds out how many entries an index has.
func (d *served) count(a *asked, log *slog.Logger) {
	debug.SetPanicOnFault(true) // a file that is served may be cut short by others
	defer func() {
		if v := recover(); v != nil {
			if err, ok := v.(error); !ok || !errors.Is(err, ErrDown) {
				log.Error("an index cannot tell how many entries it has", "index", d.name, "panic", v)
			}
		}
		d.mu.Lock()
		d.asked = nil
		d.mu.Unlock()
		close(a.done)
	}()
	a.n, a.ok = d.src.Len(), true
}

// Served is an index of a server as all its clients see it, for other protocols beside redis': what is changed
// through it and what clients change does not come between each other.
type Served struct {
	on  *served
	srv *Server
}

// Indexes returns the indexes that a server has, in the order of their numbers.
func (s *Server) Indexes() []Served {
	all := make([]Served, len(s.dbs))
	for i, d := range s.dbs {
		all[i] = Served{d, s}
	}
	return all
}

// Name returns the name of the index.
func (x Served) Name() string { return x.on.name }

// Source returns the index, which is a Changer if it can be changed. Of two batches on the same keys
// one is done before the other for all of them.
func (x Served) Source() Source {
	if x.on.live.Changer != nil {
		return &wide{&x.on.live}
	}
	return x.on.src
}

// AtOnce returns how many values should be taken out of an index at once, as far as those that have come by tell.
func (x Served) AtOnce() int { return x.srv.atOnce() }

// Saw takes note of a value of n bytes, for AtOnce.
func (x Served) Saw(n int) { x.srv.saw(n) }

// wide is a live index whose batches are of keys that belong together.
type wide struct{ *live }

// Apply does a batch.
func (w *wide) Apply(ops []pando.Op, keys []string, vals [][]byte, found []bool) error {
	if len(keys) > 1 {
		return w.applyWide(ops, keys, vals, found)
	}
	return w.live.Apply(ops, keys, vals, found)
}

// Admits is the method of a server that has options, for one that is not there yet.
func Admits(a net.Addr, opts ...Option) error {
	cfg, err := configure(opts)
	if err != nil {
		return err
	}
	return cfg.admits(a)
}
