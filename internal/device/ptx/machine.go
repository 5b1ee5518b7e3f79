package ptx

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/pando-index/pando/internal/device"
)

// machine runs launches, one at a time, each on one goroutine. Launches that run
// at once have a machine each.
type machine struct {
	heap     *heap
	races    bool
	maxSteps uint64
	observer Observer // nil for none

	// The fields below belong to the current launch.
	k      *kernel
	grid   device.Grid
	params []byte
	near   []*allocation // by memory instruction: the allocation it last accessed
	fault  *Fault
	steps  uint64 // instructions executed in this launch
	rng    generator
	plan   plan

	todo     []int32 // blocks not started
	resident int     // blocks started and not done
	live     []*block
	ready    []*warp // warps with a thread that can run
	current  *warp

	spare    []*block
	party    []*thread // scratch
	group    []*thread // scratch
	launches uint64
	total    uint64 // instructions executed in all launches
	launchClock

	// The fields below are used under the model alone.
	model  *model // nil for plain memory
	given  *knowledge
	final  knowledge // of its threads when they exited
	began  uint64    // model.steps at the start
	ended  bool
	frozen []*thread
	points []uint64 // steps at which a PCT schedule changes a priority
	lowest uint64   // priority
}

// generator is the splitmix64 generator: small, and its state can be a seed.
type generator uint64

func (g *generator) next() uint64 {
	x := uint64(*g)
	*g += noiseStride
	return mix(x)
}

// below returns a number in [0, n).
func (g *generator) below(n int) int {
	hi, _ := bits.Mul64(g.next(), uint64(n))
	return int(hi)
}

// thread is one thread of a block.
type thread struct {
	regs  []uint64 // the registers of its warp, from its lane on
	local []byte
	pc    int
	index int // within the block
	lane  uint8
	warp  *warp
	block *block

	copies []transfer
	batch  int // group of cp.async that is now open

	history // to find races

	observer *observer // nil without the model
}

// warp is 32 threads, or fewer at the end of a block.
type warp struct {
	lanes    [warpSize]*thread
	ready    uint32 // lanes that can run
	live     uint32 // lanes that have not exited
	idle     uint32 // lanes that schedules under the model leave out
	slot     int    // index in machine.ready, -1 if not there
	meetings []meeting
	block    *block
}

// block is a thread block that has started.
type block struct {
	index    int
	home     int // the multiprocessor it claims to run on
	number   int // of the block in the model, from 1
	threads  []thread
	warps    []warp
	live     int // threads that have not exited
	runnable int // threads that can run
	shared   []byte
	shadow   shadow
	barriers [16]barrier
	regs     []uint64
	local    []byte

	blockClock // to find races
}

// plan is the character of a schedule, drawn once per launch: a thousand seeds
// result in fine and coarse interleavings, with few and with many blocks at a
// time.
type plan struct {
	blocks   int    // resident at a time, at most
	grain    uint64 // log2 of the longest run of one thread
	stay     uint64 // out of 256: chance to continue with the same warp
	lockstep uint64 // out of 256: chance that lanes at the same instruction run together
	part     uint64 // out of 256: chance that only some of them do
	late     uint64 // out of 256: chance that a load is put off, under the model
}

// Most launches let lanes run together, for speed (BenchmarkSearch); the rest
// are for schedules that hardware rarely shows.
var (
	grains    = [...]uint64{0, 2, 4, 6, 7, 8, 8, 9, 9, 10, 10, 10, 11, 11, 12, 12}
	stays     = [...]uint64{0, 64, 192, 224, 240, 248, 250, 252}
	locksteps = [...]uint64{0, 64, 240, 256, 256, 256, 256, 256}
	parts     = [...]uint64{0, 0, 0, 0, 4, 16, 32, 128}
)

// maxLive is the maximum number of resident threads beyond the first block.
const maxLive = 2048

func (m *machine) draw() {
	x := m.rng.next()
	m.plan = plan{
		blocks:   1 << (x & 3),
		grain:    grains[x>>8%16],
		stay:     stays[x>>16%8],
		lockstep: locksteps[x>>24%8],
		part:     parts[x>>32%8],
	}
	m.plan.blocks = max(1, min(m.plan.blocks, maxLive/m.grid.Threads))
}

// launch runs a kernel to its end, or to its first fault.
func (m *machine) launch(k *kernel, g device.Grid, params []byte, seed uint64) error {
	m.begin(k, g, params, seed)
	if m.model != nil {
		m.model.forget()
		m.scheduleModel()
	} else {
		m.schedule()
	}
	return m.end()
}

// begin prepares a launch.
func (m *machine) begin(k *kernel, g device.Grid, params []byte, seed uint64) {
	m.k, m.grid, m.params = k, g, params
	m.fault, m.steps, m.current = nil, 0, nil
	m.rng = generator(seed)
	m.launches++
	m.draw()
	m.near = m.near[:0]
	for range k.sites {
		m.near = append(m.near, nowhere)
	}
	m.todo = m.todo[:0]
	for i := range g.Blocks {
		m.todo = append(m.todo, int32(i))
	}
	m.startRaces()
	if m.model != nil {
		m.startModel()
	}
	m.sawLaunch()
}

// end returns the fault of a launch that has run.
func (m *machine) end() error {
	m.total += m.steps
	m.ended = true
	m.dismiss()
	if m.fault != nil {
		return m.fault
	}
	return nil
}

var nowhere = new(allocation)

// schedule picks a thread and lets it run for a while, until no block is left.
func (m *machine) schedule() {
	m.admit()
	for len(m.ready) > 0 && m.fault == nil {
		x := m.rng.next()
		w := m.current
		if w == nil || w.ready == 0 || x&255 >= m.plan.stay {
			w = m.ready[x>>32*uint64(len(m.ready))>>32]
			m.current = w
		}
		turn := int(x >> 8 & 31)
		t := w.lanes[(bits.TrailingZeros32(bits.RotateLeft32(w.ready, -turn))+turn)&31]
		length := 1 + int(x>>13&(1<<(x>>26&15%(m.plan.grain+1))-1))
		if x>>40&255 < m.plan.lockstep {
			lanes := m.together(t)
			m.sawTurn(lanes...)
			m.steps += uint64(m.runTogether(lanes, length))
		} else {
			m.sawTurn(t)
			m.steps += uint64(m.run(t, length))
		}
		if m.maxSteps != 0 && m.steps > m.maxSteps && m.fault == nil {
			m.fail(Runaway, t, &m.k.code[t.pc], fmt.Sprintf("after %d instructions", m.steps))
		}
	}
}

// together returns the lanes that are at the same instruction as t, or some of
// them, t first.
func (m *machine) together(t *thread) []*thread {
	w, pc := t.warp, t.pc
	lanes := w.ready
	if m.plan.part != 0 {
		if x := m.rng.next(); x&255 < m.plan.part {
			lanes &= uint32(x >> 32)
		}
	}
	lanes &^= 1 << t.lane
	m.group = append(m.group[:0], t)
	for l := bits.RotateLeft32(lanes, -int(t.lane)); l != 0; l &= l - 1 {
		if o := w.lanes[(bits.TrailingZeros32(l)+int(t.lane))&31]; o.pc == pc {
			m.group = append(m.group, o)
		}
	}
	return m.group
}

// admit starts blocks, in any order, up to the number the plan allows.
func (m *machine) admit() {
	for m.resident < m.plan.blocks && len(m.todo) > 0 {
		i := m.rng.below(len(m.todo))
		index := m.todo[i]
		last := len(m.todo) - 1
		m.todo[i] = m.todo[last]
		m.todo = m.todo[:last]
		m.start(int(index))
	}
}

func (m *machine) start(index int) {
	b := m.takeBlock()
	b.index = index
	b.home = m.rng.below(processors)
	b.live, b.runnable = m.grid.Threads, m.grid.Threads
	b.shared = sized(b.shared, m.k.dynBase-sharedBase+m.grid.Shared)
	if m.grid.Shared == 0 {
		b.shared = b.shared[:m.k.staticBytes-sharedBase]
	}
	noisy(b.shared, m.rng.next())
	m.startBlockRaces(b)
	m.fillThreads(b)
	if m.model != nil {
		m.observe(b)
	}
	for i := range b.warps {
		w := &b.warps[i]
		w.slot = len(m.ready)
		m.ready = append(m.ready, w)
	}
	m.live = append(m.live, b)
	m.resident++
}

// takeBlock returns a block of the launch's size, reusing an old one if
// possible.
func (m *machine) takeBlock() *block {
	var b *block
	if n := len(m.spare); n > 0 {
		b = m.spare[n-1]
		m.spare = m.spare[:n-1]
	} else {
		b = new(block)
	}
	n := m.grid.Threads
	if len(b.threads) != n {
		b.threads = make([]thread, n)
		b.warps = make([]warp, (n+warpSize-1)/warpSize)
	}
	b.regs = sized(b.regs, len(b.warps)*warpSize*len(m.k.template))
	b.local = sized(b.local, n*m.k.localBytes)
	for i := range b.barriers {
		b.barriers[i].reset()
	}
	return b
}

// sized returns a slice of n elements, reusing s if it is large enough.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// fillThreads sets every thread of a block to its initial state. Registers that
// PTX leaves undefined are noise.
func (m *machine) fillThreads(b *block) {
	slots, localBytes := len(m.k.template), m.k.localBytes
	for _, n := range m.k.noise {
		x := m.rng.next()
		for s := n.from; s < n.to; s++ {
			x += noiseStride
			m.k.template[s] = x & n.mask
		}
	}
	m.fillRegisters(b)
	noisy(b.local, m.rng.next())
	for i := range b.warps {
		w := &b.warps[i]
		lanes := min(warpSize, len(b.threads)-i*warpSize)
		*w = warp{block: b, live: uint32(maskOf(lanes)), meetings: w.meetings[:0]}
		w.ready = w.live
	}
	for i := range b.threads {
		t := &b.threads[i]
		w := &b.warps[i/warpSize]
		*t = thread{
			regs: b.regs[i/warpSize*warpSize*slots+i%warpSize:], local: b.local[i*localBytes : (i+1)*localBytes],
			index: i, lane: uint8(i % warpSize), warp: w, block: b, copies: t.copies[:0],
		}
		m.startThreadRaces(t)
		w.lanes[t.lane] = t
		m.setSpecials(t)
	}
}

// fillRegisters sets the registers of all warps to the kernel's template.
func (m *machine) fillRegisters(b *block) {
	slots := len(m.k.template)
	first := b.regs[:slots*warpSize]
	for s, v := range m.k.template {
		for lane := range warpSize {
			first[s*warpSize+lane] = v
		}
	}
	for i := 1; i < len(b.warps); i++ {
		copy(b.regs[i*len(first):], first)
	}
}

// dismiss returns all blocks to the pool after a launch, finished or not.
func (m *machine) dismiss() {
	m.spare = append(m.spare, m.live...)
	clear(m.ready)
	m.live, m.ready, m.resident, m.current = m.live[:0], m.ready[:0], 0, nil
	if len(m.spare) > 16 {
		m.spare = m.spare[:16]
	}
}

// block removes a thread from those that can run.
func (m *machine) block(t *thread) {
	w := t.warp
	w.ready &^= 1 << t.lane
	t.block.runnable--
	if w.ready == 0 {
		last := len(m.ready) - 1
		m.ready[w.slot] = m.ready[last]
		m.ready[w.slot].slot = w.slot
		m.ready = m.ready[:last]
		w.slot = -1
	}
}

// wake is block's inverse.
func (m *machine) wake(t *thread) {
	w := t.warp
	if w.ready == 0 {
		w.slot = len(m.ready)
		m.ready = append(m.ready, w)
	}
	w.ready |= 1 << t.lane
	t.block.runnable++
}

// exit ends a thread that can run. Barriers no longer count it; a *.sync that
// names it can never complete.
func (m *machine) exit(t *thread, in *inst) {
	if !m.waitCopies(t, 0, true) {
		return
	}
	b := t.block
	m.block(t)
	t.warp.live &^= 1 << t.lane
	b.live--
	for i := range t.warp.meetings {
		if g := &t.warp.meetings[i]; g.mask>>t.lane&1 != 0 {
			first := t.warp.lanes[bits.TrailingZeros32(g.arrived)]
			m.fail(Deadlock, first, &m.k.code[first.pc], fmt.Sprintf("%s waits for thread %d, which has exited at line %d",
				names(t.warp, g.arrived), t.index, in.line))
			return
		}
	}
	m.recheckBarriers(b)
	if b.live == 0 {
		m.retire(b)
		return
	}
	m.checkStuck(b)
}

func (m *machine) retire(b *block) {
	for i, other := range m.live {
		if other == b {
			m.live = append(m.live[:i], m.live[i+1:]...)
			break
		}
	}
	m.spare = append(m.spare, b)
	m.resident--
	m.admit()
}

// checkStuck reports a block whose threads all wait. Nothing outside a block
// can wake them.
func (m *machine) checkStuck(b *block) {
	if b.runnable > 0 || b.live == 0 || m.fault != nil {
		return
	}
	var waits []string
	var first *thread
	for i := range b.warps {
		w := &b.warps[i]
		for at, lanes := range w.byPC() {
			waits = append(waits, fmt.Sprintf("%s at line %d", names(w, lanes), m.k.code[at].line))
		}
		if first == nil && w.live != 0 {
			first = w.lanes[bits.TrailingZeros32(w.live)]
		}
	}
	m.fail(Deadlock, first, &m.k.code[first.pc], "all threads of the block wait: "+strings.Join(waits, "; "))
}

// byPC iterates over the live lanes of a warp grouped by program counter, in
// ascending order.
func (w *warp) byPC() func(yield func(int, uint32) bool) {
	return func(yield func(int, uint32) bool) {
		for left := w.live; left != 0; {
			pc := w.lanes[bits.TrailingZeros32(left)].pc
			var here uint32
			for l := left; l != 0; l &= l - 1 {
				if i := bits.TrailingZeros32(l); w.lanes[i].pc == pc {
					here |= 1 << i
				}
			}
			left &^= here
			if !yield(pc, here) {
				return
			}
		}
	}
}

// names returns lanes of a warp as thread numbers: "threads 0-3, 7".
func names(w *warp, lanes uint32) string {
	var b strings.Builder
	b.WriteString("threads")
	base := w.lanes[0].index
	sep := " "
	for i := 0; i < warpSize; i++ {
		if lanes>>i&1 == 0 {
			continue
		}
		end := i
		for end < warpSize-1 && lanes>>(end+1)&1 != 0 {
			end++
		}
		if end > i {
			fmt.Fprintf(&b, "%s%d-%d", sep, base+i, base+end)
		} else {
			fmt.Fprintf(&b, "%s%d", sep, base+i)
		}
		sep, i = ", ", end
	}
	return b.String()
}

// fail records the first fault of a launch and returns it to be completed.
func (m *machine) fail(k FaultKind, t *thread, in *inst, detail string) *Fault {
	f := &Fault{
		Kind: k, Kernel: m.k.name, Line: int(in.line), Text: m.k.mod.line(int(in.line)),
		Block: t.block.index, Thread: t.index, Detail: detail,
	}
	if m.fault == nil {
		m.fault = f
	}
	return f
}
