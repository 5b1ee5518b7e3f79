package pandostore

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/pandostore/internal/log"
)

// Committing: who does a change, and when. The line in which requests wait, the goroutines that
// lead groups of them, the order of log, disk and tree, and what happens when one of
// these fails. What a request is in the log is in evaluate.go.

// sequencer puts changes in an order: that of the log, in which the tree gets them, too.
//
// Requests wait in a line. The goroutine of the first leads a group: it takes those that
// wait, writes them to the log, syncs it, and hands the lead to the first of those that have come
// meanwhile. Then it waits until the groups before are in the tree, puts its own there,
// and wakes the others of the group. So while one group is put into the tree, the next
// is on its way to the disk, and nothing is in the tree before it is durable.
type sequencer struct {
	mu      sync.Mutex
	waiting []*request
	leading bool          // some goroutine leads, or is about to
	before  chan struct{} // closed when all groups so far are in the tree
	failed  error         // final
	closed  bool

	writing sync.Mutex // held while frames are appended, and synced
}

// mostRequests is the most requests in a group: its leader holds them all in memory.
const mostRequests = 4096

// do does a request, and returns when it is done.
func (c *core) do(r *request) error {
	if r.kind == batching && r.batch.Len() == 0 {
		return c.refuses()
	}
	if err := c.encode(r); err != nil {
		return translate(c.dir, err)
	}
	s := &c.seq
	s.mu.Lock()
	if err := s.refusal(); err != nil {
		s.mu.Unlock()
		return err
	}
	s.waiting = append(s.waiting, r)
	if s.leading {
		s.mu.Unlock()
		if lead := <-r.lead; !lead {
			return r.result()
		}
	} else {
		s.leading = true
		s.mu.Unlock()
	}
	c.lead(r)
	return r.result()
}

// encode encodes what is known of a request, in its own goroutine: a codec may panic or
// take its time, and a key may be too long.
func (c *core) encode(r *request) (err error) {
	switch r.kind {
	case batching, deletingRange:
		return c.cols.Encode(&r.batch)
	case setting, swapping:
		r.coded, err = c.cols.EncodeOne(r.key, r.val)
		return err
	}
	return c.cols.Check(r.key)
}

// result returns the error of a request, or does what its function has done: it panics, or ends
// the goroutine.
func (r *request) result() error {
	if r.panicked != nil {
		panic(r.panicked)
	}
	if r.exited {
		runtime.Goexit()
	}
	return r.err
}

// refuses returns the error that every change gets from now on, if there is one.
func (c *core) refuses() error {
	c.seq.mu.Lock()
	defer c.seq.mu.Unlock()
	return c.seq.refusal()
}

func (s *sequencer) refusal() error {
	if s.closed {
		return pando.ErrClosed
	}
	return s.failed
}

// fail makes an error final.
func (c *core) fail(err error) error {
	s := &c.seq
	s.mu.Lock()
	defer s.mu.Unlock()
	if mutant.On && mutant.Is("store: failure is final") {
		return err
	}
	if s.failed == nil {
		s.failed = fmt.Errorf("%w: %w; all that was acknowledged is in %s, which Open recovers", ErrReadOnly, err, folderName(c.dir))
	}
	return s.failed
}

// lead leads the group that begins with a request.
func (c *core) lead(first *request) {
	s := &c.seq
	s.mu.Lock()
	g := &group{requests: s.take(), before: s.before, done: make(chan struct{})}
	s.before = g.done
	err := s.failed
	s.mu.Unlock()

	finished := false
	defer func() {
		if !finished { // it panics: others must not wait for it for ever
			c.abandon(g, first)
		}
	}()
	if err == nil {
		if err = c.write(g); err != nil {
			err = c.fail(err)
		}
	}
	c.handOver(g)
	if g.before != nil && !(mutant.On && mutant.Is("store: order of groups")) {
		<-g.before
	}
	if err == nil {
		c.apply(g)
	} else {
		g.failed(err)
	}
	finished = true
	c.wake(g, first)
	c.free(g)
	c.checkpointIfLong()
}

// handOver hands the lead to the first of those that wait.
func (c *core) handOver(g *group) {
	s := &c.seq
	s.mu.Lock()
	defer s.mu.Unlock()
	g.handed = true
	if len(s.waiting) > 0 {
		s.waiting[0].lead <- true
	} else {
		s.leading = false
	}
}

// failed gives all requests of a group an error.
func (g *group) failed(err error) {
	for _, r := range g.requests {
		r.err = err
	}
}

// wake tells the groups behind that a group is done, and its requests.
func (c *core) wake(g *group, leader *request) {
	close(g.done)
	for _, r := range g.requests {
		if r != leader {
			r.lead <- false
		}
	}
}

// abandon ends a group whose leader panics. Nobody knows how far it has come: the store
// takes no more changes.
func (c *core) abandon(g *group, leader *request) {
	g.failed(c.fail(errors.New("the goroutine that wrote a group of changes has panicked")))
	if !g.handed {
		c.handOver(g)
	}
	if g.before != nil {
		<-g.before
	}
	c.wake(g, leader)
}

// take takes the requests of the next group out of the line. What a request is to return
// can depend on those before it in ways that need them in the tree: an update does on a
// batch before it, and whatever takes an entry from an end does on everything but its
// like. These end a group. So does the begin of a checkpoint.
func (s *sequencer) take() []*request {
	n, wide := 0, false
	for ; n < len(s.waiting) && n < mostRequests; n++ {
		r := s.waiting[n]
		if n > 0 && (r.kind == updating && wide || r.kind.pops() != s.waiting[0].kind.pops()) {
			break
		}
		wide = wide || !r.kind.single()
		if r.kind == marking {
			n++
			break
		}
	}
	group := s.waiting[:n:n]
	s.waiting = append([]*request(nil), s.waiting[n:]...)
	return group
}

// group is requests that share a sync.
type group struct {
	requests []*request
	before   <-chan struct{} // closed when the groups before are in the tree; nil if there are none
	done     chan struct{}   // closed when this one is
	runs     []run
	known    map[order.Probe]known // keys that requests of the group set or delete, if some request asks
	popped   [2]*order.Probe       // the last key that was taken from each end
	handed   bool                  // the lead, to another
	refused  []refused
}

// refused is a request that the tree has refused, and its operations.
type refused struct {
	*request
	first uint64
	count int
}

// write writes a group to the log, and makes it durable if it is to be.
func (c *core) write(g *group) error {
	sync := c.cfg.mode == syncGroups
	for _, r := range g.requests {
		if r.kind == updating || r.kind.pops() {
			if g.known == nil {
				g.known = map[order.Probe]known{}
			}
		}
		sync = sync || r.kind == syncing
	}
	if g.known != nil && g.before != nil && !(mutant.On && mutant.Is("store: evaluated behind all")) {
		<-g.before // before the lock is taken, which a group that was refused needs
	}
	c.seq.writing.Lock()
	defer c.seq.writing.Unlock()
	for _, r := range g.requests {
		if err := c.append(g, r); err != nil {
			return err
		}
	}
	if err := c.endRun(g); err != nil {
		return err
	}
	if mutant.On && mutant.Is("store: acknowledged early") {
		sync = false
	}
	if sync {
		return c.log.Sync()
	}
	return c.log.Flush()
}

// apply puts a group into the tree.
func (c *core) apply(g *group) {
	for i := range g.runs {
		c.applyRun(g, &g.runs[i])
	}
	c.logRefused(g)
}

func (c *core) applyRun(g *group, u *run) {
	r := u.requests[0]
	switch {
	case u.gathered != nil && r.kind.pops():
		if _, _, r.err = c.tree.delete(r.key); r.err != nil {
			c.refuse(g, r, u.first, 1)
		}
	case u.gathered != nil:
		c.applySingles(g, u)
	case r.kind == deletingRange:
		if r.n, r.err = c.tree.deleteRange(r.batch.Keys); r.err != nil {
			c.refuse(g, r, u.first, r.batch.Keys.Len())
		}
	case r.kind == marking:
		r.err = reading(func() { r.mark.moment = c.tree.snapshot() })
	default:
		if r.n, r.err = c.tree.apply(&r.batch, r.found); r.err != nil {
			c.refuse(g, r, u.first, r.batch.Len())
		}
	}
}

// applySingles puts single requests into the tree, together if they are several.
func (c *core) applySingles(g *group, u *run) {
	b := u.gathered.Batch()
	if len(u.requests) > 1 && c.applyTogether(u, &b) == nil {
		return
	}
	// One of them, or the tree has no room for all: then for each that it has none for.
	gone := map[order.Probe]bool{}
	for i, r := range u.requests {
		err := error(nil)
		kind := b.Kind
		if b.Kinds != nil {
			kind = b.Kinds[i]
		}
		switch {
		case r.kind == updating && gone[r.key]: // it was told a value that is not there
			err = pando.ErrMemoryLimit
		case kind == op.Delete:
			r.old, r.had, err = c.tree.delete(r.key)
		case r.kind == swapping:
			r.old, r.had, err = c.tree.swap(r.key, r.val)
		default:
			err = c.tree.set(r.key, r.val)
		}
		if err != nil {
			gone[r.key] = true
			r.err = err
			c.refuse(g, r, u.first+uint64(i), 1)
		}
	}
}

// applyTogether puts single requests into the tree as one batch, or changes nothing.
func (c *core) applyTogether(u *run, b *index.Batch) error {
	old := false
	for _, r := range u.requests {
		old = old || r.kind == swapping || r.kind == deleting
	}
	if !old {
		_, err := c.tree.apply(b, nil)
		return err
	}
	all, found := u.gathered.Each(), make([]bool, len(u.requests))
	if _, err := c.tree.apply(&all, found); err != nil {
		return err
	}
	for i, r := range u.requests {
		if r.kind == swapping || r.kind == deleting {
			r.old, r.had = u.gathered.Val(i), found[i]
		}
	}
	return nil
}

// refuse notes that the tree has refused operations of a request, which has the error.
func (c *core) refuse(g *group, r *request, first uint64, count int) {
	if !errors.Is(r.err, pando.ErrMemoryLimit) && !errors.Is(r.err, pando.ErrOutOfMemory) {
		r.err = c.fail(r.err)
		return
	}
	g.refused = append(g.refused, refused{r, first, count})
}

// logRefused writes to the log what the tree has refused of a group, so that a recovery
// leaves it out. The groups behind wait for it: none of them may be acknowledged while a
// crash could still bring those operations back.
func (c *core) logRefused(g *group) {
	if len(g.refused) == 0 || mutant.On && mutant.Is("store: refused") {
		return
	}
	c.seq.writing.Lock()
	defer c.seq.writing.Unlock()
	frame := c.log.Begin()
	for _, r := range g.refused {
		frame = log.AppendRefused(frame, r.first, r.count)
	}
	err := c.log.End(frame, log.Refused, 0)
	if err == nil {
		err = c.log.Sync()
	}
	if err == nil {
		return
	}
	err = c.fail(err)
	for _, r := range g.refused {
		r.err = err
	}
}
