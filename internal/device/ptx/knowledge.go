package ptx

import "math/bits"

// knowledge is the set of operations that precede the next one of a thread in
// causality order. Every thread has a clock that advances when it passes
// knowledge on; an operation with stamp s of thread i is known if clock[i] is
// at least s. Writes that were read by strong reads are known too, without what
// precedes them.
type knowledge struct {
	clock []uint32
	seen  map[*word]*write
}

// offer is knowledge that a release pattern passes on.
type offer struct {
	*knowledge       // as it was before the pattern; not changed any more
	order      order // of the pattern's first operation, for its scope
	block      int
}

func (k *knowledge) knows(id int, stamp uint32) bool {
	return id < len(k.clock) && k.clock[id] >= stamp
}

// join adds what another one knows. nil knows nothing.
func (k *knowledge) join(o *knowledge) {
	if o == nil {
		return
	}
	for len(k.clock) < len(o.clock) {
		k.clock = append(k.clock, 0)
	}
	raise(k.clock, o.clock)
	for w, x := range o.seen {
		k.see(w, x)
	}
}

// see records that a write has been read.
func (k *knowledge) see(w *word, x *write) {
	if x.by.id < 0 || k.knows(x.by.id, x.stamp) {
		return
	}
	if k.seen == nil {
		k.seen = map[*word]*write{}
	}
	if old := k.seen[w]; old == nil || old.at < x.at {
		k.seen[w] = x
	}
}

// tick advances the clock of its owner.
func (k *knowledge) tick(id int) {
	for len(k.clock) <= id {
		k.clock = append(k.clock, 0)
	}
	k.clock[id]++
}

// snapshot returns a copy that will not change, and leaves out what is known
// twice.
func (k *knowledge) snapshot() *knowledge {
	c := &knowledge{clock: append([]uint32(nil), k.clock...)}
	for w, x := range k.seen {
		if x.at < 0 || k.knows(x.by.id, x.stamp) {
			delete(k.seen, w)
			continue
		}
		c.see(w, x)
	}
	return c
}

// publish returns what the thread knows now. Its operations after that are not
// part of it.
func (o *observer) publish() *knowledge {
	k := o.snapshot()
	o.tick(o.id)
	return k
}

// merged adds offers to a list, one for each scope and block.
func merged(list []offer, more ...offer) []offer {
	out := list[:len(list):len(list)]
next:
	for _, r := range more {
		for i, old := range out {
			if (old.order^r.order)&narrow != 0 || old.block != r.block {
				continue
			}
			if old.knowledge != r.knowledge {
				all := old.snapshot()
				all.join(r.knowledge)
				out = append([]offer(nil), out...)
				out[i].knowledge = all
			}
			continue next
		}
		out = append(out, r)
	}
	return out
}

// acquire accepts the offers that synchronize with an acquire operation
// of this order, and returns the others.
func (o *observer) acquire(from []offer, ord order) []offer {
	var left []offer
	for _, r := range from {
		if inScope(r.order, r.block, ord, o.block) {
			o.join(r.knowledge)
		} else {
			left = append(left, r)
		}
	}
	return left
}

// observed lets a read pass knowledge to its thread: a strong read knows the
// write, and after an acquire the writes released with it.
func (a *access) observed(w *word, x *write) {
	o := a.by
	if a.in.order&strong == 0 {
		return
	}
	if morallyStrong(a, &x.access) {
		o.see(w, x)
		if len(x.offers) > 0 && a.in.order&reducing == 0 {
			if o.pending == nil {
				o.pending = map[*word][]offer{}
			}
			o.pending[w] = merged(o.pending[w], x.offers...)
		}
	}
	if a.in.order&acquire != 0 && o.pending[w] != nil {
		o.settle(w, a.in.order)
	}
}

// settle acquires what was read from a word.
func (o *observer) settle(w *word, ord order) {
	if left := o.acquire(o.pending[w], ord); left != nil {
		o.pending[w] = left
	} else {
		delete(o.pending, w)
	}
}

// releasing returns the knowledge that a strong write to a word releases: that
// at the thread's last fences, at its own release operations on the word, and,
// if it is one, now.
func (a *access) releasing(w *word) []offer {
	o := a.by
	if a.in.order&strong == 0 {
		return nil
	}
	var list []offer
	for _, f := range o.fenced {
		if f != nil {
			list = merged(list, *f)
		}
	}
	list = merged(list, o.released[w]...)
	if a.in.order&release != 0 {
		now := offer{o.snapshot(), a.in.order, o.block}
		list = merged(list, now)
		if o.released == nil {
			o.released = map[*word][]offer{}
		}
		o.released[w] = merged(o.released[w], now)
	}
	return list
}

// fence executes fence and membar, which on sm_70 and later is fence.sc.
func (d *model) fence(t *thread, in *inst) {
	o := t.observer
	for w := range o.pending {
		o.settle(w, in.order)
	}
	if in.order&sequential != 0 {
		o.acquire(d.fencesSC, in.order)
	}
	r := offer{o.publish(), in.order, o.block}
	if in.order&narrow != 0 {
		o.fenced[0] = &r
	} else {
		o.fenced[1] = &r
	}
	if in.order&sequential != 0 {
		d.fencesSC = merged(d.fencesSC, r)
	}
}

// gather adds what a thread knows to a barrier as it arrives.
func (b *barrier) gather(t *thread) {
	if b.known == nil {
		b.known = new(knowledge)
	}
	b.known.join(t.observer.publish())
}

// met makes all lanes of a mask know what each of them knows. PTX promises this
// of bar.warp.sync alone.
func (w *warp) met(in *inst, mask uint32) {
	var all knowledge
	for l := mask; l != 0; l &= l - 1 {
		o := w.lanes[bits.TrailingZeros32(l)].observer
		o.spin.with |= mask
		if in.what == warpBar {
			all.join(o.publish())
		}
	}
	for l := mask; l != 0 && in.what == warpBar; l &= l - 1 {
		w.lanes[bits.TrailingZeros32(l)].observer.join(&all)
	}
}
