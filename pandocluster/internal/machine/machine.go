// Package machine is a range as its replicas have it: a function of the entries of its log, and of
// nothing else. So it knows no clock, no chance, and no order of a Go map.
//
// The keys of all ranges that a node holds are in one tree, and a range is bounds: a split
// moves nothing. Whoever runs the machines sees to it that no two of a node have bounds that overlap.
package machine

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/pandocluster/internal/packet"
)

// Tree is where the keys of ranges are.
type Tree = pando.Tree[string, []byte]

const (
	mostSessions = 256            // of a range; the one that is idle longest makes room
	mostDone     = 1024           // results that a session has not acked
	mostStaged   = 1 << 30        // bytes of parts of a range
	mostKept     = 3 * MostResult // bytes of results of a range, which its snapshots have, too
	silent       = 1024           // entries after which what a session holds makes room for others
)

// Machine is a range.
type Machine struct {
	id   uint64
	tree *Tree
	born func(Born, *Moment)

	// applied is the index of the last entry; it is read without a lock, too.
	applied atomic.Uint64

	// Held by Apply, Restore, Moment and Children, so that each sees the state between two entries.
	turn     sync.Mutex
	sessions map[uint64]*session
	staged   int // bytes of parts
	kept     int // bytes of results
	children []Born

	// Held for writing while bounds change, or keys change that no entry has changed.
	mu     sync.RWMutex
	bounds Bounds
	there  bool // it has a state: one that has just joined has none, and no keys
}

// New returns a range without a state: Restore gives it one. born is called when the range has given keys
// to another, with the moment from which that one begins; born closes it.
func New(id uint64, tree *Tree, born func(Born, *Moment)) *Machine {
	return &Machine{id: id, tree: tree, born: born, sessions: map[uint64]*session{}}
}

// Applied returns the index of the last entry that was applied.
func (m *Machine) Applied() uint64 { return m.applied.Load() }

// Bounds returns the bounds, and whether the range has a state.
func (m *Machine) Bounds() (Bounds, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.bounds, m.there
}

// Children returns the ranges that this one has given keys to.
func (m *Machine) Children() []Born {
	m.turn.Lock()
	defer m.turn.Unlock()
	return slices.Clone(m.children)
}

// Apply applies an entry, and returns its result. An error says that this replica can no longer
// be what the others are, for want of memory, say, or since another version of the program knows what the entry asks for: it must end.
// One that is applied already, or that nobody can have written, does nothing.
func (m *Machine) Apply(index uint64, entry []byte) (result []byte, err error) {
	m.turn.Lock()
	defer m.turn.Unlock()
	if index <= m.applied.Load() {
		return []byte{byte(Refused)}, nil
	}
	defer func() {
		if err == nil {
			m.applied.Store(index)
		}
	}()
	if err := Known(entry); err != nil && !(mutant.On && mutant.Is("cluster: what is not known ends a node")) {
		return nil, err
	}
	r := packet.Read(entry)
	k, c := kind(r.Byte()), Call{r.Uint(), r.Uint(), r.Uint()}
	if r.Err() != nil {
		return []byte{byte(Refused)}, nil
	}
	if k == opening {
		m.open(index)
		return done(index, 0), nil
	}
	s := m.sessions[c.Session]
	if s == nil {
		return []byte{byte(NoSession)}, nil
	}
	s.last = index
	m.ack(s, c.Acked)
	if res, ok := s.answered(c.Seq); ok {
		return res, nil
	}
	if k == staging {
		return m.stage(s, index, c.Seq, r.Uint(), r.Rest()), nil
	}
	// The one for which all others wait, to be acked, does not wait for them.
	if len(s.done) >= mostDone && (c.Seq != s.acked || mutant.On && mutant.Is("cluster: the oldest change waits for none")) {
		return []byte{byte(Busy)}, nil
	}
	switch k {
	case batching:
		result, err = m.batch(r.Rest())
	case committing:
		parts, all := s.parts[c.Seq], [][]byte{}
		for n := range r.Uint() {
			part, ok := parts[n]
			if !ok {
				return []byte{byte(NoSession)}, nil
			}
			all = append(all, part)
		}
		whole := slices.Concat(all...)
		if result, err = m.batch(whole); err == nil {
			m.drop(s, c.Seq)
		}
	case clearing:
		result = m.clear(ReadSpan(r))
	case splitting:
		result = m.split(r.String(), r.Uint(), readTexts(r))
	default:
		result = []byte{byte(Refused)}
	}
	if err == nil {
		m.keep(s, index, c.Seq, result)
	}
	return result, err
}

// open makes a session, and room for it.
func (m *Machine) open(index uint64) {
	if len(m.sessions) >= mostSessions {
		m.forget(m.idlest(func(*session) int { return 1 }))
	}
	m.sessions[index] = newSession(index)
}

// idlest returns the session that is idle longest, of those that hold something; 0 if none does.
func (m *Machine) idlest(holds func(*session) int) (id uint64) {
	for i, s := range m.sessions {
		if o := m.sessions[id]; holds(s) > 0 && (o == nil || s.last < o.last) {
			id = i
		}
	}
	return id
}

// forget ends a session.
func (m *Machine) forget(id uint64) {
	m.ack(m.sessions[id], math.MaxUint64)
	delete(m.sessions, id)
}

// spare forgets sessions that hold something and have been silent for long, since nobody is there any more, say: as many as it takes until
// there is room.
func (m *Machine) spare(index uint64, room func() bool, holds func(*session) int) {
	for !room() {
		id := m.idlest(holds)
		if id == 0 || index-m.sessions[id].last < silent || mutant.On && mutant.Is("cluster: what is held by the silent makes room") {
			return
		}
		m.forget(id)
	}
}

// ack forgets what a client has got.
func (m *Machine) ack(s *session, below uint64) {
	if below <= s.acked {
		return
	}
	s.acked = below
	for seq, result := range s.done {
		if seq < below {
			delete(s.done, seq)
			s.kept -= len(result)
			m.kept -= len(result)
		}
	}
	for seq := range s.parts {
		if seq < below {
			m.drop(s, seq)
		}
	}
}

// drop forgets the parts of a batch.
func (m *Machine) drop(s *session, seq uint64) {
	for _, p := range s.parts[seq] {
		s.staged -= len(p)
		m.staged -= len(p)
	}
	delete(s.parts, seq)
}

// keep keeps a result for who asks again, if it is small or there is room. Else that one is told that nobody knows.
func (m *Machine) keep(s *session, index, seq uint64, result []byte) {
	room := func() bool { return m.kept+len(result) <= mostKept || len(result) <= 64 }
	m.spare(index, room, func(s *session) int { return s.kept })
	if !room() && !(mutant.On && mutant.Is("cluster: results are bounded")) {
		result = []byte{byte(NoSession)}
	}
	s.done[seq] = result
	s.kept += len(result)
	m.kept += len(result)
}

// stage keeps a part of a batch.
func (m *Machine) stage(s *session, index, seq, n uint64, part []byte) []byte {
	if len(part) > 2*MostEntry {
		return []byte{byte(Refused)}
	}
	if _, ok := s.parts[seq][n]; ok {
		return done(0, 0)
	}
	room := func() bool { return m.staged+len(part) <= mostStaged }
	if m.spare(index, room, func(s *session) int { return s.staged }); !room() {
		return []byte{byte(Busy)}
	}
	if s.parts[seq] == nil {
		s.parts[seq] = map[uint64][]byte{}
	}
	s.parts[seq][n] = bytes.Clone(part)
	s.staged += len(part)
	m.staged += len(part)
	return done(0, 0)
}

// outside returns the result for keys that are not in the range, with all that may help to find them.
func (m *Machine) outside() []byte {
	b := packet.Uint(m.bounds.append([]byte{byte(Outside)}), uint64(len(m.children)))
	for i := range m.children {
		b = m.children[i].append(b)
	}
	return b
}

// batch does what Batch has put together, or none of it.
func (m *Machine) batch(data []byte) ([]byte, error) {
	r := packet.Read(data)
	report := r.Byte()
	if report > lastReport {
		return nil, fmt.Errorf("a batch reports by %d, which this program does not know", report)
	}
	var ops []pando.Op
	var keys []string
	var vals [][]byte
	differs := false
	for len(r.Rest()) > 0 {
		if len(keys) == 1 { // others are about as long, as a rule
			n := min(1<<16, len(r.Rest())/(len(data)-len(r.Rest())))
			ops, keys, vals = slices.Grow(ops, n), slices.Grow(keys, n), slices.Grow(vals, n)
		}
		op := r.Byte()
		if op > lastOp {
			return nil, fmt.Errorf("a batch has operation %d, which this program does not know", op)
		}
		key := r.Text()
		if !m.bounds.Contains(key) && r.Err() == nil {
			return m.outside(), nil
		}
		switch op {
		case opGet, opDelete:
			ops, keys, vals = append(ops, []pando.Op{opGet: pando.OpGet, opDelete: pando.OpDelete}[op]), append(keys, key), append(vals, nil)
		case opSet:
			ops, keys, vals = append(ops, pando.OpSet), append(keys, key), append(vals, r.Bytes())
		case opIs:
			var sum [sha256.Size]byte
			for i := range sum {
				sum[i] = r.Byte()
			}
			val, ok := m.tree.Get(key)
			differs = differs || !ok || sha256.Sum256(val) != sum
		case opIsNot:
			differs = differs || m.tree.Has(key)
		}
	}
	if r.Err() != nil {
		return []byte{byte(Refused)}, nil
	}
	if differs {
		return []byte{byte(Differs)}, nil
	}
	if report == reportNothing {
		return done(0, 0), m.tree.Apply(ops, keys, vals, nil)
	}
	if report == reportAll && len(keys) > 1 && m.reports(ops, keys, vals) > MostResult {
		return []byte{byte(TooLong)}, nil
	}
	found := make([]bool, len(keys))
	if err := m.tree.Apply(ops, keys, vals, found); err != nil {
		return nil, err
	}
	out := packet.Uint(packet.Uint(packet.Uint([]byte{byte(Done)}, 0), 0), uint64(len(found)))
	for i, f := range found {
		if out = packet.Bool(out, f); f && report == reportAll {
			out = packet.Bytes(out, vals[i])
		} else if f {
			out = packet.Bytes(out, "")
		}
	}
	return out, nil
}

// reports returns the bytes of the values that a batch would report.
func (m *Machine) reports(ops []pando.Op, keys []string, sets [][]byte) (size int) {
	vals, found := make([][]byte, len(keys)), make([]bool, len(keys))
	m.tree.GetBatch(keys, vals, found)
	changed := map[string]int{}
	for i, k := range keys {
		n, ok := changed[k]
		if !ok {
			n = len(vals[i])
		}
		size += n
		if ops[i] != pando.OpGet {
			changed[k] = len(sets[i])
		}
	}
	return size
}

// clear deletes the keys of a span.
func (m *Machine) clear(s Span) []byte {
	if !s.inside(m.bounds) {
		return m.outside()
	}
	return done(0, clearOf(m.tree, s))
}

// clearOf deletes the keys of a span.
func clearOf(tree *Tree, s Span) int {
	first, last, some := "", "", false
	for k := range tree.Scan(append(s.options(), pando.Limit(1))...) {
		first, some = k, true
	}
	if !some {
		return 0
	}
	for k := range tree.Scan(append(s.options(), pando.Limit(1), pando.Reverse())...) {
		last = k
	}
	return tree.DeleteRange(first, last)
}

// options returns the span as Scan takes it.
func (s Span) options() (o []pando.ScanOption) {
	if s.After {
		o = append(o, pando.After(s.Lo))
	} else if s.Lo != "" {
		o = append(o, pando.From(s.Lo))
	}
	switch {
	case s.Before:
		o = append(o, pando.Before(s.Hi))
	case s.With:
		o = append(o, pando.To(s.Hi))
	}
	return o
}

func (b Bounds) span() Span { return Span{Lo: b.Lo, Hi: b.Hi, Before: b.Hi != ""} }

// split gives keys to a new range.
func (m *Machine) split(key string, to uint64, servers []string) []byte {
	if key <= m.bounds.Lo || !m.bounds.Contains(key) {
		return m.outside()
	}
	child := Born{to, Bounds{key, m.bounds.Hi}, servers}
	moment := m.moment(child.Bounds, (&Machine{id: to, bounds: child.Bounds}).header(1))
	m.mu.Lock()
	m.bounds.Hi = key
	if mutant.On && mutant.Is("cluster: a split cuts the bounds") {
		m.bounds.Hi = child.Bounds.Hi
	}
	m.children = append(slices.Clip(m.children), child)
	m.mu.Unlock()
	m.born(child, moment)
	return done(to, 0)
}

// End takes the state away: nothing is read any more.
func (m *Machine) End() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.there = false
}

// Forget removes keys that were given to a range that has no replica here.
func (m *Machine) Forget(b Bounds) { clearOf(m.tree, b.span()) }

// Get reads keys. It returns false if the range does not have all of them.
func (m *Machine) Get(keys []string, vals [][]byte, found []bool) (ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !m.there {
		return false
	}
	for _, k := range keys {
		if !m.bounds.Contains(k) {
			return false
		}
	}
	m.tree.GetBatch(keys, vals, found)
	return true
}

// ordered is what Count and At ask, of a tree or of a moment of it.
type ordered interface {
	Len() int
	Rank(key string) int
	At(i int) (key string, val []byte)
}

// begins returns the number of entries below a span.
func (s Span) begins(in ordered) int {
	if s.After {
		return in.Rank(s.Lo + "\x00")
	}
	return in.Rank(s.Lo)
}

// ends returns the number of entries below the end of a span.
func (s Span) ends(in ordered) int {
	switch {
	case s.With:
		return in.Rank(s.Hi + "\x00")
	case s.Before:
		return in.Rank(s.Hi)
	}
	return in.Len()
}

// steadily calls f with the tree and the number of its entries below a span, again if that was another one afterwards: other ranges'
// keys come and go there meanwhile. If they never rest it calls f with a moment of the tree.
func (m *Machine) steadily(s Span, f func(in ordered, before int)) {
	if mutant.On && mutant.Is("cluster: counted beside others") {
		f(m.tree, s.begins(m.tree))
		return
	}
	for range 20 {
		before := s.begins(m.tree)
		if f(m.tree, before); s.begins(m.tree) == before {
			return
		}
	}
	moment := m.tree.Snapshot()
	defer moment.Close()
	f(moment, s.begins(moment))
}

// Count returns the number of keys of a span that are in the range, and the bounds of the range.
func (m *Machine) Count(s Span) (n int, of Bounds, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s, some := s.Within(m.bounds)
	if !m.there || !some {
		return 0, m.bounds, m.there
	}
	m.steadily(s, func(in ordered, before int) { n = max(0, s.ends(in)-before) })
	return n, m.bounds, true
}

// At returns key i of those in the range.
func (m *Machine) At(i int) (key string, val []byte, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !m.there {
		return "", nil, false
	}
	m.steadily(m.bounds.span(), func(in ordered, before int) {
		if key, val, ok = at(in, before+i); !ok || !m.bounds.Contains(key) {
			key, val, ok = "", nil, false
		}
	})
	return key, val, ok
}

// at returns an entry by its number. At of a tree panics where entries have gone meanwhile.
func at(in ordered, i int) (key string, val []byte, ok bool) {
	defer func() {
		if v := recover(); v != nil {
			if i < in.Len() {
				panic(v)
			}
			ok = false
		}
	}()
	if i >= in.Len() {
		return "", nil, false
	}
	key, val = in.At(i)
	return key, val, true
}

// Page returns the first entries of a span that are in the range, or the last, last one first: as many as have up to
// some bytes, one at least; and whether there may be more.
func (m *Machine) Page(s Span, down bool, limit, bytes int, f func(key string, val []byte)) (more bool, of Bounds, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	s, some := s.Within(m.bounds)
	if !m.there || !some {
		return false, m.bounds, m.there
	}
	o := s.options()
	if down {
		o = append(o, pando.Reverse())
	}
	for k, v := range m.tree.Scan(o...) {
		if limit <= 0 || bytes <= 0 {
			return true, m.bounds, true
		}
		f(k, v)
		limit--
		bytes -= len(k) + len(v) + 16
	}
	return false, m.bounds, true
}

// Size returns the number of keys, and about how many bytes they and their values have.
func (m *Machine) Size() (keys, size int64) {
	n, _, ok := m.Count(Span{})
	if !ok || n == 0 {
		return 0, 0
	}
	const samples = 32
	taken := 0
	for i := range samples {
		if k, v, ok := m.At(i * n / samples); ok {
			size += int64(len(k) + len(v))
			taken++
		}
	}
	if taken == 0 {
		return int64(n), 0
	}
	return int64(n), size * int64(n) / int64(taken)
}

func (m *Machine) String() string { return fmt.Sprintf("range %d", m.id) }
