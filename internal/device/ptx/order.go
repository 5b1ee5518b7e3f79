package ptx

// Happens-before. Every block has a tick that grows with each meeting of its
// threads, and every thread a stamp: the tick of its last meeting or fence. An
// access by thread i with stamp s happens before thread j's current state if j
// knows i beyond s. Knowledge comes from
//
//	a barrier of the whole block: everyone knows everyone up to base,
//	a meeting of some threads:    their group knows what any of them knew,
//	a fence, an atomic write, an atomic read of the same word, a fence:
//	                              the reader knows what the writer knew.

// launchClock is the part of this state that belongs to a launch.
type launchClock struct {
	fences bool // some thread has used a fence
	words  map[wordKey]*far
}

// wordKey is an address accessed by atomics; block is 0 for global memory.
type wordKey struct {
	block int
	addr  uint64
}

// blockClock is the part of this state that belongs to a block.
type blockClock struct {
	tick uint32
	base uint32 // tick of the last barrier of all its threads
}

// history is the part of this state that belongs to a thread.
type history struct {
	who     uint32
	stamp   uint32
	group   *group
	far     *far     // known through atomics
	pending *far     // read by an atomic, known after the next fence
	fenced  snapshot // known at the last fence: an atomic write passes it on
}

// group is the shared knowledge of threads that have met.
type group struct {
	size  int
	known []uint32 // by thread of the block
}

// far is knowledge of threads and blocks anywhere in the launch. It is
// immutable.
type far struct {
	threads map[uint32]uint32 // by who
	blocks  map[int]uint32
}

// snapshot is the knowledge of a thread at a fence.
type snapshot struct {
	stamp uint32 // 0 for no fence yet
	base  uint32
	known []uint32
	far   *far
	made  *far
}

func (m *machine) startRaces() {
	m.fences = false
	clear(m.words)
	if m.words == nil {
		m.words = map[wordKey]*far{}
	}
}

func (m *machine) startBlockRaces(b *block) {
	b.blockClock = blockClock{tick: 1, base: 1}
	b.shadow.renew(b.shadow.age+1, len(b.shared))
}

func (m *machine) startThreadRaces(t *thread) {
	t.who = uint32(t.block.index*m.grid.Threads+t.index) + 1
	t.stamp = 1
}

// before reports whether an access of another thread happens before t's
// current state.
func (m *machine) before(o *touch, t *thread) bool {
	n := uint32(m.grid.Threads)
	blk := int((o.who - 1) / n)
	if blk == t.block.index {
		if t.block.base > o.stamp {
			return true
		}
		if g := t.group; g != nil && g.known[(o.who-1)%n] > o.stamp {
			return true
		}
	}
	return t.far != nil && (t.far.threads[o.who] > o.stamp || t.far.blocks[blk] > o.stamp)
}

// order puts everything that the threads of a party did before everything they
// will do. If they are all that a barrier of the block waits for, it also puts
// what exited threads did before that: the barrier waited for them to exit.
func (m *machine) order(b *block, party []*thread, whole bool) {
	b.tick++
	if whole {
		b.base = b.tick
		for _, t := range party {
			t.stamp = b.tick
		}
	} else {
		g := joint(len(b.threads), party)
		for _, t := range party {
			t.group, t.stamp = g, b.tick
			g.known[t.index] = b.tick
		}
	}
	if m.fences {
		shareFar(party)
	}
}

// joint returns the group of a party: their present one if they also met last
// time, otherwise a new one that knows what any of them knew.
func joint(threads int, party []*thread) *group {
	first := party[0].group
	same := first != nil && first.size == len(party)
	for _, t := range party {
		same = same && t.group == first
	}
	if same {
		return first
	}
	g := &group{size: len(party), known: make([]uint32, threads)}
	var last *group
	for _, t := range party {
		if t.group != last && t.group != nil {
			last = t.group
			raise(g.known, last.known)
		}
	}
	return g
}

func raise(to, from []uint32) {
	for i, v := range from {
		to[i] = max(to[i], v)
	}
}

// joinPool adds what a thread knows to a counted barrier as it arrives.
func (m *machine) joinPool(b *barrier, t *thread) {
	blk := t.block
	if b.pool == nil {
		b.pool = make([]uint32, len(blk.threads))
	}
	if t.group != nil {
		raise(b.pool, t.group.known)
	}
	blk.tick++
	t.stamp = blk.tick
	b.pool[t.index] = blk.tick
}

// orderBarrier is order for the threads that leave a barrier.
func (m *machine) orderBarrier(blk *block, b *barrier) {
	if b.want == 0 || len(b.waiting) == len(blk.threads) {
		m.order(blk, b.waiting, true)
		return
	}
	g := &group{size: -1, known: b.pool} // threads that only arrived are not in it
	for _, t := range b.waiting {
		t.group = g
	}
	if m.fences {
		shareFar(b.waiting)
	}
}

// shareFar makes everyone know what anyone knows through atomics. A meeting
// counts as the fence that an atomic read waits for.
func shareFar(party []*thread) {
	var all *far
	for _, t := range party {
		all = all.join(t.far).join(t.pending)
	}
	for _, t := range party {
		t.far, t.pending = all, nil
	}
}

// fence implements membar and fence, of any scope.
func (m *machine) fence(t *thread) {
	if !m.races {
		return
	}
	m.fences = true
	b := t.block
	t.far, t.pending = t.far.join(t.pending), nil
	b.tick++
	t.stamp = b.tick
	t.fenced = snapshot{stamp: b.tick, base: b.base, far: t.far}
	if t.group != nil {
		t.fenced.known = append([]uint32(nil), t.group.known...)
	}
}

// strong lets an atomic, volatile or relaxed access pass knowledge on: a write
// leaves what the thread knew at its last fence with the word, a read takes
// what is there.
func (m *machine) strong(t *thread, in *inst, addr uint64, read, write bool) {
	if in.order&release != 0 {
		m.fence(t)
	}
	if !m.fences {
		return
	}
	key := m.keyOf(t, in, addr)
	if read {
		t.pending = t.pending.join(m.words[key])
		if in.order&acquire != 0 {
			t.far, t.pending = t.far.join(t.pending), nil
		}
	}
	if write && t.fenced.stamp != 0 {
		m.words[key] = m.words[key].join(t.fenced.knowledge(m, t))
	}
}

func (m *machine) keyOf(t *thread, in *inst, addr uint64) wordKey {
	sp := in.space
	if sp == generic {
		sp, addr = window(addr)
	}
	if sp == shared {
		return wordKey{t.block.index + 1, addr}
	}
	return wordKey{0, addr}
}

// knowledge converts a snapshot to far knowledge, once.
func (s *snapshot) knowledge(m *machine, t *thread) *far {
	if s.made != nil {
		return s.made
	}
	k := &far{threads: map[uint32]uint32{t.who: s.stamp}, blocks: map[int]uint32{t.block.index: s.base}}
	first := t.who - uint32(t.index)
	for i, v := range s.known {
		if v > s.base && i != t.index {
			k.threads[first+uint32(i)] = v
		}
	}
	s.made = k.join(s.far)
	return s.made
}

// join returns what either of them knows. nil knows nothing.
func (f *far) join(o *far) *far {
	switch {
	case o == nil || o == f:
		return f
	case f == nil:
		return o
	}
	if f.covers(o) {
		return f
	}
	all := &far{threads: make(map[uint32]uint32, len(f.threads)), blocks: make(map[int]uint32, len(f.blocks))}
	for _, from := range []*far{f, o} {
		for who, v := range from.threads {
			all.threads[who] = max(all.threads[who], v)
		}
		for blk, v := range from.blocks {
			all.blocks[blk] = max(all.blocks[blk], v)
		}
	}
	return all
}

// covers reports whether f knows all that o knows.
func (f *far) covers(o *far) bool {
	for who, v := range o.threads {
		if f.threads[who] < v {
			return false
		}
	}
	for blk, v := range o.blocks {
		if f.blocks[blk] < v {
			return false
		}
	}
	return true
}
