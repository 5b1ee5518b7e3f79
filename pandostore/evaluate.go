package pandostore

import (
	"math"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/pandostore/internal/log"
)

// Evaluating: what the requests of a group are in the log. Sets and batches are what they are; what
// an Update or a PopMin does depends on the tree and on the requests before it in its
// group, and is found out here, so that the log has results and never functions. When and
// in which order all that happens is in sequencer.go.

// run is what is put into the tree at once: single requests together, or one other.
type run struct {
	requests []*request
	gathered *index.Gathering // the operations of single requests: number i is that of request i
	first    uint64           // number of the first operation
}

// known is what a key is after the requests so far.
type known struct {
	val index.Value
	had bool
}

// append adds a request to the last run of a group, or is a run by itself.
func (c *core) append(g *group, r *request) error {
	switch {
	case r.kind == syncing:
		return nil
	case r.kind.single():
		return c.appendSingle(g, r)
	}
	if err := c.endRun(g); err != nil {
		return err
	}
	switch r.kind {
	case poppingMin, poppingMax:
		return c.appendPop(g, r)
	case marking:
		if err := c.log.Rotate(); err != nil {
			if c.log.Broken() != nil {
				return err
			}
			r.err = err // nothing was written: there is no checkpoint, and the log goes on where it is
			return nil
		}
		g.runs = append(g.runs, run{requests: []*request{r}})
		r.mark.segment, r.mark.next = c.log.Place()
		return nil
	}
	_, next := c.log.Place()
	g.runs = append(g.runs, run{requests: []*request{r}, first: next})
	if r.kind == deletingRange { // in one frame, however long its keys are: half a range is none
		room := math.MaxInt
		if mutant.On && mutant.Is("store: range in one frame") {
			room = c.cfg.frame
		}
		return c.appendBatch(&r.batch, log.DeleteRange, room)
	}
	if k := &r.batch; k.Kinds != nil && !changes(k.Kinds) {
		return nil
	}
	return c.appendBatch(&r.batch, frameKind(&r.batch), c.cfg.frame)
}

// changes reports whether some operation changes something.
func changes(kinds []op.Kind) bool {
	for _, k := range kinds {
		if k != op.Get {
			return true
		}
	}
	return false
}

// frameKind returns the kind of frame for a batch.
func frameKind(b *index.Batch) log.FrameKind {
	switch {
	case b.Kinds != nil:
		return log.Mixed
	case b.Kind == op.Set:
		return log.Set
	}
	return log.Delete
}

// appendBatch appends a batch as one frame, or as several of about room bytes and a commit.
func (c *core) appendBatch(b *index.Batch, kind log.FrameKind, room int) error {
	for from := 0; from < b.Len(); {
		frame, n := c.cols.Append(c.log.Begin(), b, from, room)
		if n == b.Len() {
			return c.log.End(frame, kind, n)
		}
		if err := c.log.EndPart(frame, kind, n); err != nil {
			return err
		}
		from += n
	}
	return c.log.Commit()
}

// appendSingle adds a request about one key to the run under way.
func (c *core) appendSingle(g *group, r *request) error {
	kind, val := op.Set, r.val
	switch r.kind {
	case deleting:
		kind = op.Delete
	case updating:
		var old index.Value
		had := false
		if err := reading(func() { old, had = c.knownOf(g, r.key) }); err != nil {
			return err
		}
		keep := c.ask(r, old, had)
		if r.panicked != nil || r.exited || r.err != nil || !keep && !had {
			return nil
		}
		if val = r.val; !keep {
			kind = op.Delete
		}
	}
	if g.known != nil {
		g.known[r.key] = known{val, kind == op.Set}
	}
	last := len(g.runs) - 1
	if last < 0 || g.runs[last].gathered == nil {
		_, next := c.log.Place()
		g.runs = append(g.runs, run{gathered: c.gather(), first: next})
		last++
	}
	at := &g.runs[last]
	at.requests = append(at.requests, r)
	at.gathered.Add(kind, r.key, val, r.coded)
	return nil
}

// ask calls the function of an update. If it panics, or ends its goroutine, as the Fatal of
// a test does, the goroutine that waits for it does the same: it must not be the leader's,
// which has others to care for.
func (c *core) ask(r *request, old index.Value, had bool) (keep bool) {
	done := make(chan struct{})
	go func() {
		finished := false
		defer func() {
			if r.panicked = recover(); !finished && r.panicked == nil {
				r.exited = true
			}
			close(done)
		}()
		if r.val, keep = r.f(old, had); keep {
			r.coded, r.err = c.cols.EncodeOne(r.key, r.val)
			r.err = translate(c.dir, r.err)
		}
		finished = true
	}()
	<-done
	return keep
}

// knownOf returns what a key is after all requests before. The value is for somebody who may
// change it: that of a request is its caller's, and not in the log yet.
func (c *core) knownOf(g *group, key order.Probe) (val index.Value, had bool) {
	k, ok := g.known[key]
	switch {
	case !ok:
		return c.tree.get(key)
	case k.had:
		return c.tree.h.Val.Lent(k.val), true
	}
	return k.val, k.had
}

// appendPop finds the entry that a request takes from an end. Those that others of the
// group take are still in the tree: it goes on behind the last of them, and there is
// nothing left where it meets those from the other end.
func (c *core) appendPop(g *group, r *request) error {
	end := 0
	if r.kind == poppingMax {
		end = 1
	}
	var key order.Probe
	var val index.Value
	ok := false
	if err := reading(func() { key, val, ok = c.tree.beyond(g.popped[end], end == 1) }); err != nil {
		return err
	}
	if _, gone := g.known[key]; !ok || gone {
		return nil
	}
	g.known[key] = known{}
	g.popped[end] = &key
	r.key, r.old, r.had = key, val, true
	gathered := c.gather()
	gathered.Add(op.Delete, key, index.Value{}, nil)
	_, next := c.log.Place()
	g.runs = append(g.runs, run{[]*request{r}, gathered, next})
	return c.endRun(g)
}

// endRun appends the frame of single requests, if some wait for it.
func (c *core) endRun(g *group) error {
	last := len(g.runs) - 1
	if last < 0 || g.runs[last].gathered == nil {
		return nil
	}
	if _, next := c.log.Place(); next != g.runs[last].first {
		return nil // it is there already
	}
	b := g.runs[last].gathered.Batch()
	for from := 0; from < b.Len(); {
		frame, n := c.cols.Append(c.log.Begin(), &b, from, c.cfg.frame)
		if err := c.log.End(frame, frameKind(&b), n); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// gather returns an empty gathering, which done takes back.
func (c *core) gather() *index.Gathering {
	if g, ok := c.gatherings.Get().(*index.Gathering); ok {
		return g
	}
	return c.cols.Gather()
}

func (c *core) done(g *index.Gathering) {
	g.Reset()
	c.gatherings.Put(g)
}

// free gives the memory of a group to later ones.
func (c *core) free(g *group) {
	for _, u := range g.runs {
		if u.gathered != nil {
			c.done(u.gathered)
		}
	}
}
