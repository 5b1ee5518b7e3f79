package ptx

// model is memory as PTX's memory consistency model has it. Each word has a
// history of writes in coherence order, and each thread knows some of them: a
// read may return any write that is not older than the latest one known.
// Knowledge spreads by release and acquire patterns, fences and barriers
// (knowledge.go). A model is shared by the launches that run at the same time.
//
// The bytes of an allocation always are those of the latest writes, so that
// nothing has to be done when a launch ends.
type model struct {
	modes
	races bool

	words    map[wordKey]*word
	threads  int     // numbered so far: the length of a complete clock
	blocks   int     // numbered so far
	fencesSC []offer // known to the threads that execute fence.sc
	age      uint64  // number of times that everything was forgotten

	steps   uint64 // instructions executed
	changed uint64 // steps at the last change of memory
	version uint64 // changes of memory
	asleep  []*thread
}

// word is the history of 4 bytes that a launch has accessed.
type word struct {
	writes   []*write // in coherence order; the first is known to everyone
	accesses []access // for races
	mem      *[]byte  // the memory that it is part of
	off      uint64   // in mem
	addr     uint64   // generic
	wrote    uint64   // steps at the latest write, plus 1; 0 for none
	readOnly *access  // the latest ld.global.nc
}

// keepWrites is how many writes of a word can still be read. Forgetting older
// ones loses outcomes, but allows none that PTX forbids.
const keepWrites = 16

// access is an access of a thread to a word.
type access struct {
	by    *observer
	in    *inst
	stamp uint32 // by's clock at that time
	size  uint8  // bytes of the whole scalar access
	mask  uint8  // bytes of the word
	write bool
}

// write is a value in the history of a word.
type write struct {
	access
	at     int    // index in word.writes, -1 once it is forgotten
	bits   uint32 // the bytes of mask
	read   *write // the write that an atomic read; nothing may come between
	pair   *write // the other half of a strong access of 8 bytes
	offers []offer
}

// observer is the model's state of a thread.
type observer struct {
	knowledge
	id     int // index in clocks
	block  int // number of the block in the model
	m      *machine
	thread *thread
	index  int // within the block
	home   int // index of the block
	exited bool

	fenced   [2]*offer         // at the last fence, by scope: .cta, wider
	released map[*word][]offer // by its release operations
	pending  map[*word][]offer // read, and known after an acquire
	late     []lateAccess
	spin     spin
	turn     turn
}

// nobody has written what was there before the launch.
var nobody = &observer{id: -1, block: -1}

func newModel(o modes, races bool) *model {
	return &model{modes: o, races: races || o.strict, words: map[wordKey]*word{}}
}

// forget ends a time in which launches ran: their writes are known to all that
// follow.
func (d *model) forget() {
	clear(d.words)
	d.threads, d.blocks, d.fencesSC, d.asleep = 0, 0, nil, d.asleep[:0]
	d.age++
	d.changed = d.steps
}

// observe makes the threads of a block known to the model.
func (m *machine) observe(b *block) {
	d := m.model
	d.blocks++
	b.number = d.blocks
	for i := range b.threads {
		t := &b.threads[i]
		t.observer = d.observer(m.given)
		o := t.observer
		o.block, o.m, o.thread, o.index, o.home = b.number, m, t, t.index, b.index
		m.startTurn(o)
	}
	d.changed = d.steps // a thread that waits for a block to come has a reason to
}

// observer numbers a new thread, which knows this much.
func (d *model) observer(known *knowledge) *observer {
	o := &observer{id: d.threads}
	d.threads++
	o.join(known)
	o.tick(o.id)
	return o
}

// location is where an access goes: bytes of global or shared memory.
type location struct {
	mem   *[]byte // a pointer: memory that grows may move on the host
	off   uint64  // in mem
	block int     // 0 for global memory, otherwise the number of the block
	base  uint64  // generic address of mem
}

// locate returns the location of an access that m.at has accepted, and false
// if it is in memory that threads do not share.
func (m *machine) locate(t *thread, in *inst, addr uint64) (location, bool) {
	sp := in.space
	if sp == generic {
		sp, addr = window(addr)
	}
	switch sp {
	case global:
		a := m.near[in.site]
		return location{mem: &a.data, off: addr - a.base, base: a.base}, true
	case shared:
		return location{mem: &t.block.shared, off: addr - sharedBase, block: t.block.number, base: sharedBase + windows[shared]}, true
	}
	return location{}, false
}

// word returns the word at an offset.
func (d *model) word(l location, off uint64) *word {
	off &^= 3
	key := wordKey{l.block, l.base + off}
	if w := d.words[key]; w != nil {
		return w
	}
	w := &word{mem: l.mem, off: off, addr: l.base + off}
	first := &write{access: access{by: nobody, in: new(inst), mask: 15}}
	for i, b := range w.back() {
		first.bits |= uint32(b) << (8 * i)
	}
	w.writes = append(w.writes, first)
	d.words[key] = w
	return w
}

// back returns where the latest values are, up to 4 bytes.
func (w *word) back() []byte {
	return (*w.mem)[w.off:min(w.off+4, uint64(len(*w.mem)))]
}

// scalar describes one scalar access of a thread: all of it, for one word.
func scalar(t *thread, in *inst, off uint64) access {
	o := t.observer
	mask := uint8(15)
	if in.width < 4 {
		mask = (1<<in.width - 1) << (off % 4)
	}
	return access{by: o, in: in, stamp: o.clock[o.id], size: in.width, mask: mask, write: in.op != opLoad}
}

// morallyStrong reports whether two accesses to the same bytes are related by
// program order, or are both strong, within each other's scope, and of the same
// size.
func morallyStrong(a, b *access) bool {
	if a.by == b.by {
		return true
	}
	return a.in.order&b.in.order&strong != 0 && a.size == b.size && inScope(a.in.order, a.by.block, b.in.order, b.by.block)
}

// inScope reports whether two operations of different threads each have a scope
// that includes the other one's block.
func inScope(a order, blockA int, b order, blockB int) bool {
	return (a|b)&narrow == 0 || blockA == blockB
}
