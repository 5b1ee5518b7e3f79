package ptx

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
)

// The axioms of PTX's memory consistency model, for programs of a few accesses
// to words: a second definition beside the model, which does not run anything,
// but looks at every way to choose what reads return, the order of the writes
// and that of the fence.sc.

// action is an operation of such a program. The first events are the initial
// values of the words.
type action struct {
	thread, block int // -1 for an initial value
	loc           int // -1 for a fence
	order         order
	read, write   bool
	value         int // written, or added to what was read
	reg           int // of the outcome, for reads
}

// relation holds, for each event, the set of events that it precedes.
type relation []uint32

func (r relation) has(a, b int) bool { return r[a]>>b&1 != 0 }
func (r relation) add(a, b int)      { r[a] |= 1 << b }

// closed returns the transitive closure.
func (r relation) closed() relation {
	c := append(relation(nil), r...)
	for k := range c {
		for i := range c {
			if c.has(i, k) {
				c[i] |= c[k]
			}
		}
	}
	return c
}

func (r relation) cyclic() bool {
	for i, set := range r.closed() {
		if set>>i&1 != 0 {
			return true
		}
	}
	return false
}

// execution is a choice that may or may not be allowed.
type execution struct {
	events []action
	from   []int    // what each read reads
	co     relation // of all writes to a word
	sc     relation // of all fence.sc
}

// strongly reports whether two events are morally strong.
func (x *execution) strongly(a, b int) bool {
	p, q := &x.events[a], &x.events[b]
	if p.loc >= 0 && q.loc >= 0 && p.loc != q.loc {
		return false
	}
	if p.thread == q.thread {
		return true
	}
	return p.order&q.order&strong != 0 && inScope(p.order, p.block, q.order, q.block)
}

// before reports whether a precedes b in program order.
func (x *execution) before(a, b int) bool {
	return a < b && x.events[a].thread == x.events[b].thread && x.events[a].thread >= 0
}

// observation returns the observation order.
func (x *execution) observation() relation {
	obs := make(relation, len(x.events))
	for r, e := range x.events {
		if e.read && x.strongly(x.from[r], r) {
			obs.add(x.from[r], r)
		}
	}
	for range x.events { // through atomics
		for z, e := range x.events {
			for w := range x.events {
				if e.read && e.write && obs.has(w, z) {
					obs[w] |= obs[z]
				}
			}
		}
	}
	return obs
}

// pattern is a release or an acquire pattern: its access, and the operation that
// synchronizes.
type pattern struct{ access, with int }

func (x *execution) patterns() (release_, acquire_ []pattern) {
	for a, e := range x.events {
		for f, g := range x.events {
			if e.loc < 0 || e.order&strong == 0 || g.loc >= 0 && g.loc != e.loc {
				continue
			}
			if e.write && g.order&release != 0 && (g.write || g.loc < 0) && (f == a || x.before(f, a)) {
				release_ = append(release_, pattern{a, f})
			}
			if e.read && g.order&acquire != 0 && (g.read || g.loc < 0) && (f == a || x.before(a, f)) {
				acquire_ = append(acquire_, pattern{a, f})
			}
		}
	}
	return release_, acquire_
}

// causality returns base causality and causality order.
func (x *execution) causality(obs relation) (base, cause relation) {
	base = make(relation, len(x.events))
	for a := range x.events {
		for b := range x.events {
			start := x.events[a].thread < 0 && x.events[b].thread >= 0
			if start || x.before(a, b) || x.sc.has(a, b) && x.strongly(a, b) {
				base.add(a, b)
			}
		}
	}
	out, in := x.patterns()
	for _, p := range out {
		for _, q := range in {
			if obs.has(p.access, q.access) && x.strongly(p.with, q.with) {
				base.add(p.with, q.with)
			}
		}
	}
	base = base.closed()
	cause = append(relation(nil), base...)
	for a := range obs {
		for z := range x.events {
			if obs.has(a, z) {
				cause[a] |= base[z]
			}
		}
	}
	return base, cause
}

// allowed reports whether no axiom forbids the execution.
func (x *execution) allowed() bool {
	_, cause := x.causality(x.observation())
	co := make(relation, len(x.events)) // without writes that race
	for a := range x.events {
		for b := range x.events {
			if x.co.has(a, b) && (x.strongly(a, b) || cause.has(a, b)) {
				co.add(a, b)
			}
			if cause.has(a, b) && (x.co.has(b, a) || x.sc.has(b, a) && x.strongly(a, b)) {
				return false // coherence, fence-SC
			}
		}
	}
	co = co.closed()
	return x.causal(co, cause) && x.coherent(co)
}

// causal checks causality, and that atomics are atomic.
func (x *execution) causal(co, cause relation) bool {
	for r, e := range x.events {
		if !e.read {
			continue
		}
		from := x.from[r]
		if cause.has(r, from) {
			return false
		}
		for w, o := range x.events {
			if w == r || !o.write || o.loc != e.loc || !co.has(from, w) {
				continue
			}
			if cause.has(w, r) || e.write && x.strongly(w, r) && co.has(w, r) {
				return false
			}
		}
	}
	return true
}

// coherent checks sequential consistency of each word.
func (x *execution) coherent(co relation) bool {
	all := make(relation, len(x.events))
	for a, e := range x.events {
		for b, f := range x.events {
			if e.loc < 0 || e.loc != f.loc || a == b {
				continue
			}
			comm := co.has(a, b) || f.read && x.from[b] == a || e.read && f.write && co.has(x.from[a], b)
			if x.before(a, b) || comm && x.strongly(a, b) {
				all.add(a, b)
			}
		}
	}
	return !all.cyclic()
}

// value returns what an event writes; false for atomics that read each other.
func (x *execution) value(e, depth int) (int, bool) {
	v := x.events[e].value
	if !x.events[e].read {
		return v, true
	}
	if depth > len(x.events) {
		return 0, false
	}
	old, ok := x.value(x.from[e], depth+1)
	return old + v, ok
}

// outcomes returns all outcomes that the axioms allow.
func outcomes(events []action, regs int) map[string]bool {
	x := &execution{events: events, from: make([]int, len(events)), co: make(relation, len(events)), sc: make(relation, len(events))}
	found := map[string]bool{}
	x.orders(-1, func() {
		x.sources(0, func() {
			out := make([]int, regs)
			for r, e := range events {
				if e.read {
					v, ok := x.value(x.from[r], 0)
					if !ok {
						return
					}
					out[e.reg] = v
				}
			}
			if s := fmt.Sprint(out); !found[s] && x.allowed() {
				found[s] = true
			}
		})
	})
	return found
}

// sources tries everything that reads from an event on may read.
func (x *execution) sources(r int, try func()) {
	if r == len(x.events) {
		try()
		return
	}
	if !x.events[r].read {
		x.sources(r+1, try)
		return
	}
	for w, e := range x.events {
		if e.write && e.loc == x.events[r].loc && w != r {
			x.from[r] = w
			x.sources(r+1, try)
		}
	}
}

// orders tries all orders of the writes to each word from loc on, and of the
// fence.sc for loc -1. Initial values come first.
func (x *execution) orders(loc int, try func()) {
	if loc == 2 {
		try()
		return
	}
	var list []int
	for i, e := range x.events {
		if e.thread >= 0 && e.loc == loc && (e.write || loc < 0 && e.order&sequential != 0) {
			list = append(list, i)
		}
	}
	rel := x.co
	if loc < 0 {
		rel = x.sc
	}
	inEachOrder(list, 0, func() {
		for i, a := range list {
			rel[a] = 0
			for _, b := range list[i+1:] {
				rel.add(a, b)
			}
		}
		if loc >= 0 {
			rel[loc] = 0
			for _, a := range list {
				rel.add(loc, a)
			}
		}
		x.orders(loc+1, try)
	})
}

func inEachOrder(list []int, k int, try func()) {
	if k >= len(list)-1 {
		try()
		return
	}
	for i := k; i < len(list); i++ {
		list[k], list[i] = list[i], list[k]
		inEachOrder(list, k+1, try)
		list[k], list[i] = list[i], list[k]
	}
}

// drawn is a random program: its text and its events.
type drawn struct {
	litmus
	events []action
	regs   int
	racy   bool // it may have plain accesses, and scopes that are too narrow
}

// drawProgram draws a program of two or three threads, in one block or more.
func drawProgram(rng *rand.Rand) *drawn {
	p := &drawn{events: []action{{thread: -1, block: -1, loc: 0, write: true}, {thread: -1, block: -1, loc: 1, write: true}}}
	p.racy = rng.IntN(2) == 0
	n := 2 + rng.IntN(2)
	p.near = []int{1, 2, 4}[rng.IntN(3)]
	for t := range n {
		var body []string
		for range 2 + rng.IntN(4-n) {
			body = append(body, p.draw(rng, t))
		}
		p.threads = append(p.threads, strings.Join(body, "; "))
	}
	for len(p.threads)%p.near != 0 {
		p.threads = append(p.threads, "mov.u32 %r9, 0")
	}
	return p
}

// draw adds an operation to a thread.
func (p *drawn) draw(rng *rand.Rand, t int) string {
	e := action{thread: t, block: t / p.near, loc: rng.IntN(2), order: strong}
	scope := "gpu"
	if p.racy && rng.IntN(3) == 0 || p.near == 4 && rng.IntN(2) == 0 {
		scope = "cta"
	}
	e.order |= scopeOf(scope)
	name := []string{"x", "y"}[e.loc]
	sem := []string{"relaxed", "relaxed", "acquire", "release", "acq_rel"}[rng.IntN(5)]
	text := ""
	switch kind := rng.IntN(8); {
	case kind < 3: // a load
		e.read, e.reg = true, p.regs
		if sem != "acquire" {
			sem = "relaxed"
		}
		text = fmt.Sprintf("ld.%s.%s $%d, [%s]", sem, scope, e.reg, name)
		p.regs++
	case kind < 6: // a store
		e.write, e.value = true, len(p.events)
		if sem != "release" {
			sem = "relaxed"
		}
		text = fmt.Sprintf("st.%s.%s [%s], %d", sem, scope, name, e.value)
	case kind == 6: // an atomic
		e.read, e.write, e.reg, e.value = true, true, p.regs, 16<<bits.Len(uint(p.regs))
		text = fmt.Sprintf("atom.%s.%s.global.add.u32 $%d, [%s], %d", sem, scope, e.reg, name, e.value)
		p.regs++
	default:
		e.loc, sem = -1, "acq_rel"
		text = "fence.acq_rel." + scope
		if rng.IntN(2) == 0 {
			text, e.order = "fence.sc."+scope, e.order|sequential
		}
	}
	e.order |= semantics(sem)
	if p.racy && e.loc >= 0 && rng.IntN(4) == 0 && e.read != e.write {
		e.order = plain
		text = strings.NewReplacer(sem+"."+scope, "weak").Replace(text)
	}
	p.events = append(p.events, e)
	return text
}
