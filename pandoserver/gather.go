package pandoserver

import "sync"

// Gatherer does lookups of several callers together: those that come while a batch is under way are the next one. A
// source on a GPU asks it, since a batch there takes as long for one key as for thousands. Where nothing
// is under way a caller does not wait; else for the end of one batch, and of the one that it is part of.
type Gatherer struct {
	look func(keys []string, vals [][]byte, found []bool) (hits int)

	mu      sync.Mutex
	busy    bool
	waiting []*lookup
}

// lookup is the keys of a caller.
type lookup struct {
	keys  []string
	vals  [][]byte
	found []bool
	hits  int
	state state
	woken chan struct{}
}

// state is what a caller who waits is to do.
type state uint8

const (
	answered state = iota
	leads          // it does the next batch, for all who wait
	failed         // its batch has failed: it asks by itself, so that it sees why
)

// gatherEnough is how many keys are a batch by themselves, and gatherMost how many are done at once.
const (
	gatherEnough = 4 << 10
	gatherMost   = 16 << 10
)

// NewGatherer makes a Gatherer over a function that does what GetBatch of a Source does.
func NewGatherer(look func(keys []string, vals [][]byte, found []bool) (hits int)) *Gatherer {
	return &Gatherer{look: look}
}

// GetBatch does what GetBatch of a Source does.
func (g *Gatherer) GetBatch(keys []string, vals [][]byte, found []bool) (hits int) {
	if len(keys) >= gatherEnough {
		return g.look(keys, vals, found)
	}
	me := &lookup{keys: keys, vals: vals, found: found, state: leads}
	g.mu.Lock()
	if g.busy {
		me.woken = make(chan struct{})
		g.waiting = append(g.waiting, me)
		g.mu.Unlock()
		<-me.woken
	} else {
		g.busy = true
		g.mu.Unlock()
	}
	switch me.state {
	case failed:
		return g.look(keys, vals, found)
	case leads:
		g.lead(me)
	}
	return me.hits
}

// lead does a batch for a caller and those who wait, and hands the lead on.
func (g *Gatherer) lead(me *lookup) {
	all := g.take(me)
	outcome := failed
	defer func() {
		for _, a := range all[1:] {
			a.state = outcome
			close(a.woken)
		}
		g.next()
	}()
	if len(all) == 1 {
		me.hits = g.look(me.keys, me.vals, me.found)
	} else {
		g.together(all)
	}
	outcome = answered
}

// take returns a caller and those who wait, as many as fit into a batch.
func (g *Gatherer) take(me *lookup) []*lookup {
	g.mu.Lock()
	defer g.mu.Unlock()
	all, size, n := []*lookup{me}, len(me.keys), 0
	for n < len(g.waiting) && size+len(g.waiting[n].keys) <= gatherMost {
		size += len(g.waiting[n].keys)
		n++
	}
	all = append(all, g.waiting[:n]...)
	g.waiting = append(g.waiting[:0], g.waiting[n:]...)
	clear(g.waiting[len(g.waiting):cap(g.waiting)])
	return all
}

// next wakes the one who leads next, if somebody waits.
func (g *Gatherer) next() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.busy = false
		return
	}
	a := g.waiting[0]
	g.waiting = append(g.waiting[:0], g.waiting[1:]...)
	g.waiting[:len(g.waiting)+1][len(g.waiting)] = nil
	a.state = leads
	close(a.woken)
}

// together looks up the keys of several callers at once.
func (g *Gatherer) together(all []*lookup) {
	n := 0
	for _, a := range all {
		n += len(a.keys)
	}
	keys, vals, found := make([]string, 0, n), make([][]byte, n), make([]bool, n)
	for _, a := range all {
		keys = append(keys, a.keys...)
	}
	g.look(keys, vals, found)
	at := 0
	for _, a := range all {
		end := at + len(a.keys)
		copy(a.vals, vals[at:end])
		copy(a.found, found[at:end])
		for _, had := range found[at:end] {
			if had {
				a.hits++
			}
		}
		at = end
	}
}
