package machine

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/seed"
)

// rig is ranges of one tree, by their logs.
type rig struct {
	t      *testing.T
	tree   *Tree
	ranges map[uint64]*Machine
}

func newRig(t *testing.T) *rig {
	tree, err := pando.NewTree[string, []byte]()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tree.Close() })
	return &rig{t, tree, map[uint64]*Machine{}}
}

// begin restores a range from the bytes of a snapshot.
func (r *rig) begin(id uint64, from []byte) *Machine {
	m := r.ranges[id]
	if m == nil {
		m = New(id, r.tree, func(b Born, at *Moment) {
			r.begin(b.ID, bytesOf(r.t, at))
		})
		r.ranges[id] = m
	}
	if err := m.Restore(bytes.NewReader(from), func(Bounds) error { return nil }); err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *rig) first() *Machine {
	o, err := Empty(1, Bounds{})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.begin(1, bytesOf(r.t, o))
}

// bytesOf returns the snapshot of a moment, and closes it.
func bytesOf(t *testing.T, o *Moment) []byte {
	defer o.Close()
	var b bytes.Buffer
	if _, err := o.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (r *rig) apply(m *Machine, index uint64, entry []byte) Result {
	r.t.Helper()
	b, err := m.Apply(index, entry)
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := ReadResult(b)
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

// log draws the log of a range: sessions, batches whole and in parts, entries twice.
type drawer struct {
	rng      *rand.Rand
	index    uint64
	sessions map[uint64]uint64 // and the last number of each
	sent     [][]byte
}

func (d *drawer) next() []byte {
	d.index++
	switch x := d.rng.IntN(20); {
	case len(d.sessions) == 0 || x == 0:
		d.sessions[d.index] = 0
		return Open()
	case x < 5 && len(d.sent) > 0: // once more
		return d.sent[max(0, len(d.sent)-1-d.rng.IntN(5))]
	}
	ids := slices.Sorted(maps.Keys(d.sessions))
	id := ids[d.rng.IntN(len(ids))]
	d.sessions[id]++
	seq := d.sessions[id]
	c := Call{id, seq, seq - uint64(d.rng.IntN(int(min(seq, 4))))}
	var e []byte
	switch d.rng.IntN(8) {
	case 0:
		lo, hi := d.key(), d.key()
		e = c.Clear(Span{Lo: min(lo, hi), Hi: max(lo, hi), Before: d.rng.IntN(2) == 0, With: true})
	default:
		b := NewBatch(d.rng.IntN(2) == 0)
		for range 1 + d.rng.IntN(5) {
			switch d.rng.IntN(5) {
			case 0:
				b.Delete(d.key())
			case 1:
				b.Get(d.key())
			case 2:
				b.If(d.key(), nil, false)
				b.Set(d.key(), []byte(fmt.Sprint(d.index)))
			default:
				b.Set(d.key(), bytes.Repeat([]byte{byte(d.index)}, d.rng.IntN(20)))
			}
		}
		e = c.Batch(b)
		if d.rng.IntN(4) == 0 {
			parts, commit := c.Parts(b)
			d.sent = append(d.sent, parts...)
			e = commit
			if d.rng.IntN(2) == 0 { // the commit comes later
				d.sent = append(d.sent, commit)
				return parts[0]
			}
		}
	}
	d.sent = append(d.sent, e)
	return e
}

func (d *drawer) key() string { return fmt.Sprintf("%02d", d.rng.IntN(40)) }

// A replica that was restored from snapshots now and then is what one is that has applied all: keys, results
// and sessions.
func TestReplicasAreEqual(t *testing.T) {
	rng := seed.Rand(t)
	for range seed.Times(30, 300) {
		one, other := newRig(t), newRig(t)
		a, b := one.first(), other.first()
		d := &drawer{rng: rng, index: 1, sessions: map[uint64]uint64{}}
		for range 200 {
			e := d.next()
			x, err := a.Apply(d.index, e)
			y, err2 := b.Apply(d.index, bytes.Clone(e))
			if err != nil || err2 != nil || !bytes.Equal(x, y) {
				t.Fatalf("entry %d returns %x and %x, %v, %v", d.index, x, y, err, err2)
			}
			if rng.IntN(20) == 0 {
				b = other.begin(1, bytesOf(t, b.Moment()))
			}
		}
		if x, y := bytesOf(t, a.Moment()), bytesOf(t, b.Moment()); !bytes.Equal(x, y) {
			t.Fatal("two replicas have different states")
		}
		if a.kept != b.kept || a.staged != b.staged {
			t.Fatalf("%d and %d bytes of results, %d and %d of parts", a.kept, b.kept, a.staged, b.staged)
		}
	}
}

// An entry that comes twice is applied once, and has the same result: also when the range was restored in between.
func TestRetryIsAppliedOnce(t *testing.T) {
	for _, restored := range []bool{false, true} {
		r := newRig(t)
		m := r.first()
		id := r.apply(m, 2, Open()).ID
		swap := func(seq uint64, val string) []byte {
			b := NewBatch(true)
			b.Set("k", []byte(val))
			return Call{id, seq, seq}.Batch(b)
		}
		first := r.apply(m, 3, swap(1, "one"))
		if restored {
			r.begin(1, bytesOf(t, m.Moment()))
		}
		again := r.apply(m, 4, swap(1, "one"))
		if first.Found[0] || again.Status != Done || again.Found[0] {
			t.Errorf("%+v, and then %+v", first, again)
		}
		if res := r.apply(m, 5, swap(2, "two")); !res.Found[0] || string(res.Vals[0]) != "one" {
			t.Errorf("%+v", res)
		}
		if res := r.apply(m, 6, swap(1, "one")); res.Status != NoSession {
			t.Errorf("what was acked is done again: %+v", res)
		}
		if res := r.apply(m, 7, Call{99, 1, 1}.Batch(NewBatch(false))); res.Status != NoSession {
			t.Errorf("a session that nobody has opened: %+v", res)
		}
	}
}

// A split gives keys away, once; the child begins with what its parent had, and both refuse the other's keys.
func TestSplit(t *testing.T) {
	r := newRig(t)
	m := r.first()
	id := r.apply(m, 2, Open()).ID
	b := NewBatch(false)
	for i := range 10 {
		b.Set(fmt.Sprint(i), []byte{byte(i)})
	}
	r.apply(m, 3, Call{id, 1, 1}.Batch(b))
	split := Call{id, 2, 2}.Split("5", 7, []string{"a#1", "b#2"})
	if res := r.apply(m, 4, split); res.Status != Done || res.ID != 7 {
		t.Fatalf("%+v", res)
	}
	r.apply(m, 5, split)
	if res := r.apply(m, 6, Call{id, 3, 3}.Split("5", 8, nil)); res.Status != Outside {
		t.Errorf("a range was split twice at one key: %+v", res)
	}
	child := r.ranges[7]
	if len(r.ranges) != 2 || child == nil {
		t.Fatalf("%d ranges", len(r.ranges))
	}
	for i, of := range []*Machine{m, child} {
		if n, bounds, ok := of.Count(Span{}); n != 5 || !ok || bounds != []Bounds{{"", "5"}, {"5", ""}}[i] {
			t.Errorf("%v has %d keys, %v", of, n, bounds)
		}
	}
	out := NewBatch(false)
	out.Set("1", nil)
	out.Set("6", []byte("x"))
	res := r.apply(m, 7, Call{id, 4, 4}.Batch(out))
	if res.Status != Outside || len(res.Born) != 1 || res.Born[0].ID != 7 || !slices.Equal(res.Born[0].Servers, []string{"a#1", "b#2"}) || res.Bounds != (Bounds{"", "5"}) {
		t.Errorf("a batch that is half outside: %+v", res)
	}
	vals, found := make([][]byte, 2), make([]bool, 2)
	if m.Get([]string{"1", "6"}, vals, found) || !m.Get([]string{"1", "11"}, vals, found) || vals[0][0] != 1 || found[1] {
		t.Error(vals, found)
	}
	if k, _, ok := child.At(1); !ok || k != "6" {
		t.Error(k, ok)
	}
	if _, _, ok := m.At(5); ok {
		t.Error("a range has an entry behind its end")
	}
	// A replay of the whole log over a snapshot does nothing twice.
	again := r.begin(1, bytesOf(t, m.Moment()))
	if again.Applied() != 7 {
		t.Error(again.Applied())
	}
	r.apply(again, 4, split)
	if n, _, _ := child.Count(Span{}); n != 5 || len(again.Children()) != 1 {
		t.Error(n, again.Children())
	}
}

// Keys of another range that come while a range is counted are not counted, also if they never cease.
func TestCountedBesideOthers(t *testing.T) {
	r := newRig(t)
	m := r.first()
	r.apply(m, 2, Open())
	b := NewBatch(false)
	for i := range 10 {
		b.Set(fmt.Sprint(i), nil)
	}
	r.apply(m, 3, Call{2, 1, 1}.Batch(b))
	r.apply(m, 4, Call{2, 2, 2}.Split("5", 2, nil))
	child := r.ranges[2]
	for _, others := range []int{0, 1, 1000} {
		calls, n, first := 0, 0, ""
		child.steadily(Span{Lo: "5"}, func(in ordered, before int) {
			if calls++; calls <= others {
				r.tree.Set(fmt.Sprintf("1.%d.%d", others, calls), nil)
			}
			n = Span{Lo: "5"}.ends(in) - before
			first, _, _ = at(in, before)
		})
		if n != 5 || first != "5" || calls <= min(others, 1) {
			t.Errorf("beside %d changes: %d keys, the first is %q, counted %d times", others, n, first, calls)
		}
	}
}

// Pages are the entries of a span in order, or backwards; spans end where they say.
func TestPages(t *testing.T) {
	r := newRig(t)
	m := r.first()
	id := r.apply(m, 2, Open()).ID
	b := NewBatch(false)
	for i := range 100 {
		b.Set(fmt.Sprintf("%02d", i), []byte("v"))
	}
	r.apply(m, 3, Call{id, 1, 1}.Batch(b))
	r.apply(m, 4, Call{id, 2, 2}.Split("80", 2, nil))
	for _, c := range []struct {
		s    Span
		n    int
		down bool
	}{
		{Span{}, 80, false}, {Span{}, 80, true}, {Span{Lo: "10"}, 70, false}, {Span{Lo: "10", After: true}, 69, true},
		{Span{Lo: "10", Hi: "20", Before: true}, 10, true}, {Span{Lo: "10", Hi: "20", With: true}, 11, false},
		{Span{Lo: "70", Hi: "90", With: true}, 10, false}, {Span{Lo: "85"}, 0, false}, {Span{Hi: "80", Before: true}, 80, false},
		{Span{Lo: "20", Hi: "20", With: true}, 1, false}, {Span{Lo: "20", Hi: "20", Before: true}, 0, false},
	} {
		n, last := 0, ""
		more, _, _ := m.Page(c.s, c.down, 1000, 1<<20, func(k string, _ []byte) {
			if n > 0 && (k > last) == c.down {
				t.Errorf("%+v: %s behind %s", c.s, k, last)
			}
			n, last = n+1, k
		})
		count, _, _ := m.Count(c.s)
		if n != c.n || count != c.n || more {
			t.Errorf("%+v: %d entries, counted as %d, more %t", c.s, n, count, more)
		}
		n = 0
		if more, _, _ = m.Page(c.s, c.down, 3, 1<<20, func(string, []byte) { n++ }); n != min(3, c.n) || more != (c.n > 3) {
			t.Errorf("%+v: %d entries of three, more %t", c.s, n, more)
		}
	}
	if res := r.apply(m, 5, Call{id, 3, 3}.Clear(Span{Lo: "70"})); res.Status != Outside {
		t.Errorf("%+v", res)
	}
	if res := r.apply(m, 6, Call{id, 4, 4}.Clear(Span{Lo: "70", Hi: "80", Before: true})); res.N != 10 {
		t.Errorf("%+v", res)
	}
	if n := r.ranges[2].bounds; n.Lo != "80" {
		t.Error(n)
	}
	if n, _, _ := r.ranges[2].Count(Span{}); n != 20 {
		t.Errorf("a range's keys were deleted by another: %d are left", n)
	}
}

// A batch that is larger than an entry is done whole, by its commit, or not at all.
func TestParts(t *testing.T) {
	r := newRig(t)
	m := r.first()
	id := r.apply(m, 2, Open()).ID
	b := NewBatch(false)
	for i := range 10 {
		b.Set(fmt.Sprint(i), bytes.Repeat([]byte{1}, 100_000))
	}
	parts, commit := Call{id, 1, 1}.Parts(b)
	index := uint64(2)
	for i := len(parts) - 1; i >= 0; i-- {
		if index++; len(parts[i]) > MostEntry+64 || r.apply(m, index, parts[i]).Status != Done {
			t.Fatal("a part was refused")
		}
		if n, _, _ := m.Count(Span{}); n != 0 {
			t.Fatal("a part is seen")
		}
	}
	if m.staged != b.Size() {
		t.Errorf("%d bytes are staged, of %d", m.staged, b.Size())
	}
	r.begin(1, bytesOf(t, m.Moment()))
	if res := r.apply(m, 90, commit); res.Status != Done {
		t.Fatalf("%+v", res)
	}
	if n, _, _ := m.Count(Span{}); n != 10 || m.staged != 0 {
		t.Errorf("%d keys, %d bytes staged", n, m.staged)
	}
	if res := r.apply(m, 91, commit); res.Status != Done {
		t.Errorf("%+v", res)
	}
	_, commit = Call{id, 2, 2}.Parts(b)
	if res := r.apply(m, 92, commit); res.Status == Done {
		t.Error("a batch was done without its parts")
	}
}

// Sessions make room for others, the one that is idle longest first, and never more are kept.
func TestSessionsMakeRoom(t *testing.T) {
	r := newRig(t)
	m := r.first()
	first := r.apply(m, 2, Open()).ID
	for i := range uint64(mostSessions + 10) {
		if res := r.apply(m, 10+2*i, Open()); res.Status != Done {
			t.Fatal(res)
		}
		if res := r.apply(m, 11+2*i, Call{first, i + 1, i + 1}.Batch(NewBatch(false))); res.Status != Done {
			t.Fatalf("a session that is in use was forgotten: %+v", res)
		}
	}
	if len(m.sessions) != mostSessions {
		t.Error(len(m.sessions))
	}
	if res := r.apply(m, 9999, Call{10, 1, 1}.Batch(NewBatch(false))); res.Status != NoSession {
		t.Errorf("%+v", res)
	}
}

// What sessions hold has bounds: of those that are silent for long it goes first, and then parts wait, and results are not
// kept, which who asks again is told.
func TestHeldBySessions(t *testing.T) {
	r := newRig(t)
	m := r.first()
	dead, id := r.apply(m, 2, Open()).ID, r.apply(m, 3, Open()).ID
	index := uint64(3)
	next := func(e []byte) Result {
		index++
		return r.apply(m, index, e)
	}
	// fill lets a session hold as many bytes of one piece as it may; all of them are the same bytes.
	piece := make([]byte, 1<<20)
	fill := func() {
		s := m.sessions[dead]
		s.parts[1] = map[uint64][]byte{}
		for n := uint64(0); m.staged+len(piece) <= mostStaged; n++ {
			s.parts[1][n] = piece
			s.staged, m.staged = s.staged+len(piece), m.staged+len(piece)
		}
		for seq := uint64(2); m.kept+len(piece) <= mostKept; seq++ {
			s.done[seq] = piece
			s.kept, m.kept = s.kept+len(piece), m.kept+len(piece)
		}
	}
	fill()
	b := NewBatch(true)
	b.Set("k", piece)
	parts, commit := Call{id, 1, 1}.Parts(b)
	if res := next(parts[0]); res.Status != Busy {
		t.Errorf("%+v", res)
	}
	short := NewBatch(true)
	short.Set("k", bytes.Repeat(piece, 5))
	next(Call{id, 2, 1}.Batch(short))
	if res := next(Call{id, 3, 1}.Batch(short)); len(res.Vals) != 1 || len(res.Vals[0]) != 5<<20 {
		t.Errorf("%d values", len(res.Vals))
	}
	if res := next(Call{id, 3, 1}.Batch(short)); res.Status != NoSession || m.kept > mostKept+100 {
		t.Errorf("%v, %d bytes are kept of %d", res.Status, m.kept, mostKept)
	}
	index += silent
	for _, e := range append(parts, commit) {
		if res := next(e); res.Status != Done {
			t.Fatalf("%+v", res)
		}
	}
	if res := next(Call{id, 4, 1}.Batch(short)); res.Status != Done {
		t.Errorf("%+v", res)
	}
	if res := next(Call{id, 4, 1}.Batch(short)); res.Status != Done || len(res.Vals) != 1 {
		t.Errorf("%v, %d values", res.Status, len(res.Vals))
	}
	if res := next(Call{dead, 9, 1}.Batch(NewBatch(false))); res.Status != NoSession {
		t.Errorf("%+v", res)
	}
	if next(Call{id, 5, 5}.Batch(NewBatch(false))); m.staged != 0 || m.kept > 100 {
		t.Errorf("%d bytes of parts, and %d of results are held yet", m.staged, m.kept)
	}
}

// A batch that comes in parts may take long: what others have done meanwhile does not keep it from its end, nor for ever others.
func TestSlowBatch(t *testing.T) {
	r := newRig(t)
	m := r.first()
	id := r.apply(m, 2, Open()).ID
	b := NewBatch(false)
	b.Set("k", make([]byte, 2*MostEntry))
	parts, commit := Call{id, 1, 1}.Parts(b)
	for i, p := range parts {
		r.apply(m, 3+uint64(i), p)
	}
	seq, busy := uint64(2), 0
	for ; busy < 2; seq++ {
		if res := r.apply(m, 100+seq, Call{id, seq, 1}.Batch(NewBatch(false))); res.Status == Busy {
			busy++
		}
	}
	if len(m.sessions[id].done) != mostDone {
		t.Errorf("%d results", len(m.sessions[id].done))
	}
	if res := r.apply(m, 1000+seq, commit); res.Status != Done {
		t.Errorf("the batch waits for those that wait for it: %+v", res)
	}
	if res := r.apply(m, 1001+seq, Call{id, seq, seq}.Batch(NewBatch(false))); res.Status != Done {
		t.Errorf("%+v", res)
	}
}

// What would return more than fits in an answer is not done.
func TestLongResult(t *testing.T) {
	r := newRig(t)
	m := r.first()
	id := r.apply(m, 2, Open()).ID
	set := NewBatch(false)
	set.Set("k", make([]byte, MostResult/2))
	r.apply(m, 3, Call{id, 1, 1}.Batch(set))
	for i, c := range []struct {
		of   func(b *Batch)
		want Status
	}{
		{func(b *Batch) { b.Get("k"); b.Get("k"); b.Get("j"); b.Get("k") }, TooLong},
		{func(b *Batch) { b.Get("k"); b.Get("k") }, Done},
		{func(b *Batch) { b.Get("k"); b.Get("k"); b.Get("k"); b.PresenceOnly() }, Done},
		{func(b *Batch) { b.Set("j", []byte("x")); b.Get("j"); b.Get("k"); b.Get("k") }, TooLong},
		{func(b *Batch) { b.Delete("k"); b.Get("k"); b.Get("k") }, Done},
	} {
		b, seq := NewBatch(true), uint64(i)+2
		c.of(b)
		res := r.apply(m, 4+uint64(i), Call{id, seq, seq}.Batch(b))
		if res.Status != c.want || c.want == Done && !res.Found[0] || c.want != Done && m.tree.Has("j") {
			t.Errorf("%d: %v, %v", i, res.Status, res.Found)
		}
	}
}

// Damaged entries and snapshots are refused, and change nothing.
func TestDamaged(t *testing.T) {
	rng := seed.Rand(t)
	r := newRig(t)
	m := r.first()
	id := r.apply(m, 2, Open()).ID
	b := NewBatch(true)
	b.If("k", []byte("v"), true)
	b.Set("k", []byte("v"))
	whole := Call{id, 1, 1}.Batch(b)
	index := uint64(3)
	for range 2000 {
		e := bytes.Clone(whole)
		e[rng.IntN(len(e))] ^= byte(1 + rng.IntN(255))
		// What this program does not know another version may.
		if _, err := m.Apply(index, e[:rng.IntN(len(e)+1)]); err != nil && !strings.Contains(err.Error(), "does not know") {
			t.Fatal(err)
		}
		index++
	}
	snap := bytesOf(t, m.Moment())
	for range 200 {
		s := bytes.Clone(snap)
		s[rng.IntN(len(s))] ^= byte(1 + rng.IntN(255))
		if s = s[:rng.IntN(len(s))]; m.Restore(bytes.NewReader(s), func(Bounds) error { return nil }) == nil {
			t.Fatal("a damaged snapshot was restored")
		}
	}
	if b, there := m.Bounds(); !there || b != (Bounds{}) {
		t.Error(b, there)
	}
}

// What this program does not know is not passed over, since another version does it: the node ends.
func TestOfAnotherVersion(t *testing.T) {
	r := newRig(t)
	m := r.first()
	id := r.apply(m, 2, Open()).ID
	c := Call{id, 1, 1}
	kinds, ops, reports := c.Batch(NewBatch(false)), NewBatch(true), NewBatch(false)
	kinds[0] = byte(lastKind) + 1
	ops.Get("k")
	ops.data[1] = lastOp + 1
	reports.data[0] = lastReport + 1
	for what, e := range map[string][]byte{"kind": kinds, "operation": c.Batch(ops), "report": c.Batch(reports)} {
		if res, err := m.Apply(3, e); err == nil || m.Applied() != 2 {
			t.Errorf("a new %s is %v, and %d is applied", what, res, m.Applied())
		}
	}
	if Known(kinds) == nil || Known(Open()) != nil {
		t.Error("what is known")
	}
}

// An entry that cannot be applied is not counted as applied: a snapshot would be believed to have it.
func TestFailedEntryIsNotApplied(t *testing.T) {
	tree, err := pando.NewTree[string, []byte](pando.MemoryLimit(1 << 20))
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	r := &rig{t, tree, map[uint64]*Machine{}}
	m := r.first()
	session := m.Applied() + 1
	if _, err := m.Apply(session, Open()); err != nil {
		t.Fatal(err)
	}
	for i := uint64(1); i < 1000; i++ {
		b := NewBatch(false)
		for j := range uint64(1000) {
			b.Set(fmt.Sprint("key ", 1000*i+j), []byte("value"))
		}
		if _, err := m.Apply(session+i, Call{Session: session, Seq: i, Acked: i}.Batch(b)); err == nil {
			continue
		}
		if m.Applied() != session+i-1 {
			t.Errorf("entry %d has failed, and %d is applied", session+i, m.Applied())
		}
		return
	}
	t.Fatal("the tree has no limit")
}
