package ptx

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// spin is the state of a thread's loop, in a time in which memory does not
// change. A thread that comes back to an instruction with the registers it had
// there before, and has read nothing but the latest values, will do so forever.
type spin struct {
	since  uint64 // version of memory, plus 1; 0 for none
	pc     int
	regs   []uint64
	jumps  int    // backward, since regs were saved
	limit  int    // regs are saved again after this many, twice as many each time
	again  int    // times that the thread came back
	with   uint32 // lanes that it met since regs were saved
	block  bool   // it met others of its block since then
	reads  []spinRead
	asleep bool
}

// spinRead is a word that is read in a loop.
type spinRead struct {
	w  *word
	in *inst
}

// note remembers a read of a thread that seems to spin.
func (m *machine) note(t *thread, in *inst, w *word) {
	s := &t.observer.spin
	if s.since == 0 || len(s.reads) >= 8 {
		return
	}
	for _, r := range s.reads {
		if r.w == w {
			return
		}
	}
	s.reads = append(s.reads, spinRead{w, in})
}

// togetherness is how many times threads that meet each other in their loops
// must have come back, all of them, before they are taken to spin: each may
// depend on the others.
const togetherness = 3

// looped is called at each jump backward. It reports whether the thread spins;
// it then sleeps until memory changes.
func (m *machine) looped(t *thread) bool {
	d, s := m.model, &t.observer.spin
	if !d.quiet() || t.warp.ready>>t.lane&1 == 0 {
		s.since = 0
		return false
	}
	m.bindAll(t)
	if s.since != d.version+1 {
		*s = spin{since: d.version + 1, regs: s.regs, reads: s.reads[:0], limit: 1}
		s.save(m, t)
		return false
	}
	if s.pc == t.pc && s.same(m, t) {
		s.again++
		if s.again >= togetherness || s.with == 0 && !s.block {
			return m.sleeps(t)
		}
		return false
	}
	if s.jumps++; s.jumps >= s.limit {
		s.limit *= 2
		s.save(m, t)
	}
	return false
}

func (s *spin) save(m *machine, t *thread) {
	s.pc, s.jumps, s.again, s.with, s.block, s.reads = t.pc, 0, 0, 0, false, s.reads[:0]
	s.regs = sized(s.regs, len(m.k.template))
	for i := range s.regs {
		s.regs[i] = t.regs[i*warpSize]
	}
}

func (s *spin) same(m *machine, t *thread) bool {
	for i, v := range s.regs {
		if t.regs[i*warpSize] != v {
			return false
		}
	}
	return true
}

// sleeps puts a thread to sleep if all that it meets in its loop spin as well.
func (m *machine) sleeps(t *thread) bool {
	s := &t.observer.spin
	for l := s.with & t.warp.live; l != 0; l &= l - 1 {
		if !t.warp.lanes[bits.TrailingZeros32(l)].observer.spins(s.since) {
			return false
		}
	}
	if s.block {
		for i := range t.block.threads {
			if o := t.block.threads[i].observer; !o.exited && !o.spins(s.since) {
				return false
			}
		}
	}
	s.asleep = true
	t.warp.idle |= 1 << t.lane
	m.model.asleep = append(m.model.asleep, t)
	return true
}

func (o *observer) spins(since uint64) bool {
	return o.spin.since == since && o.spin.again >= togetherness
}

// wakeAll wakes the threads that sleep.
func (d *model) wakeAll() {
	for _, t := range d.asleep {
		t.observer.spin.asleep = false
		t.warp.idle &^= 1 << t.lane
	}
	d.asleep = d.asleep[:0]
}

// deadlock reports which thread spins on which word, which wrote that last, and which
// holds it.
func (m *machine) deadlock() {
	d := m.model
	machines := []*machine{m}
	for _, t := range d.asleep {
		if o := t.observer.m; !slices.Contains(machines, o) {
			machines = append(machines, o)
		}
	}
	var first *thread
	var lines []string
	told := map[*word]bool{}
	others := 0
	for _, o := range machines {
		for t := range o.spinners() {
			if len(t.observer.spin.reads) == 0 {
				others++ // it meets one that reads, or only computes
				continue
			}
			if first == nil || o == m && first.observer.m != m {
				first = t
			}
			lines = append(lines, t.observer.spinning(told))
		}
	}
	if first == nil {
		w := m.ready[0]
		first = w.lanes[bits.TrailingZeros32(w.ready)]
		lines = append(lines, fmt.Sprintf("%v loops at line %d and reads nothing that others write", first.observer, m.k.code[first.pc].line))
	}
	const most = 6
	if more := len(lines) - most; more > 0 {
		lines, others = lines[:most], others+more
	}
	if others > 0 {
		lines = append(lines, fmt.Sprintf("%d more threads loop with them", others))
	}
	if n := len(m.todo); n > 0 {
		lines = append(lines, fmt.Sprintf("blocks that have not started: %d", n))
	}
	m.fail(Deadlock, first, &m.k.code[first.pc], "all threads that can run spin, and nothing changes memory: "+strings.Join(lines, "; "))
}

// spinners iterates over the threads that sleep, and those that wait for them in
// their own loops.
func (m *machine) spinners() func(yield func(*thread) bool) {
	return func(yield func(*thread) bool) {
		for _, b := range m.live {
			for i := range b.threads {
				s := &b.threads[i].observer.spin
				if s.asleep || s.since == m.model.version+1 && !b.threads[i].observer.exited {
					if !yield(&b.threads[i]) {
						return
					}
				}
			}
		}
	}
}

// spinning describes the loop of a thread, and each word once.
func (o *observer) spinning(told map[*word]bool) string {
	var on []string
	for _, r := range o.spin.reads {
		text := fmt.Sprintf("%#x at line %d (%s)", r.w.addr, r.in.line, o.m.k.mod.line(int(r.in.line)))
		if !told[r.w] {
			told[r.w] = true
			text += r.w.story()
		}
		on = append(on, text)
	}
	return fmt.Sprintf("%v spins on %s", o, strings.Join(on, " and "))
}

// story describes a word: the thread that wrote it last, and the one that last
// changed it by an atomic, as the taker of a latch does.
func (w *word) story() string {
	last := w.writes[len(w.writes)-1]
	s := fmt.Sprintf(", which is %d", w.value(len(w.writes)-1))
	if last.by == nobody {
		return s + " and was never written"
	}
	s += ", last written by " + last.access.String() + last.by.fate()
	for i := len(w.writes) - 1; i > 0; i-- {
		if x := w.writes[i]; x.read != nil && w.value(i) != w.value(i-1) {
			if x.by != last.by {
				s += ", last taken by " + x.access.String() + x.by.fate()
			}
			break
		}
	}
	return s
}

// fate describes the present state of a thread.
func (o *observer) fate() string {
	switch {
	case o.m == nil:
		return ""
	case o.exited:
		return ", which has exited"
	case o.spin.asleep:
		return ", which spins itself"
	case o.thread.warp.ready>>o.thread.lane&1 == 0:
		return fmt.Sprintf(", which waits at line %d", o.m.k.code[o.thread.pc].line)
	}
	return ""
}
