package pandocluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/disk/crash"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/pandocluster/internal/consensus"
	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandocluster/internal/packet"
	"github.com/pando-index/pando/pandoserver"
)

// in runs a test in a cluster of some computers, on a clock that jumps.
func in(t *testing.T, plans bool, names string, f func(w *world, at func(name string) *Node)) {
	inLarge(t, plans, 1, names, f)
}

// inLarge is in, with logs and snapshots some times as large.
func inLarge(t *testing.T, plans bool, scale int64, names string, f func(w *world, at func(name string) *Node)) {
	synctest.Test(t, func(t *testing.T) {
		rng := seed.Rand(t)
		w := newWorld(t, rng)
		w.plans, w.scale = plans, scale
		defer w.close()
		for i, name := range names {
			if i == 0 {
				w.add(string(name))
			} else {
				w.add(string(name), names[:1])
			}
		}
		if plans {
			if err := w.whole(2); err != nil {
				t.Fatal(err)
			}
		}
		f(w, func(name string) *Node { return w.all[name].node.Load() })
	})
}

// do does a step, which must go well.
func (w *world) do(n *Node, s Step) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 50*beat)
	defer cancel()
	if err := n.Do(ctx, s); err != nil {
		w.t.Fatalf("%+v: %v", s, err)
	}
}

// replicate gives nodes a replica with a vote of a range.
func (w *world) replicate(id uint64, on ...*Node) {
	w.t.Helper()
	for _, n := range on {
		w.do(n, Step{Kind: AddReplica, Range: id, Node: n.ID()})
		w.do(n, Step{Kind: Promote, Range: id, Node: n.ID()})
	}
}

// set sets a key, which must go well.
func (w *world) set(n *Node, key, val string) {
	w.t.Helper()
	if err := n.Apply([]pando.Op{pando.OpSet}, []string{key}, [][]byte{[]byte(val)}, nil); err != nil {
		w.t.Fatalf("%s: %v", key, err)
	}
}

func get(n *Node, key string) (val string, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = v.(error)
		}
	}()
	vals, found := [][]byte{nil}, []bool{false}
	n.GetBatch([]string{key}, vals, found)
	return string(vals[0]), nil
}

// A member that is added later has a higher number, also where the log of the leader then is shorter than the one before had.
func TestMemberNumbers(t *testing.T) {
	last := uint64(1) // of those that begin a range
	for _, c := range []struct{ term, last uint64 }{{1, 1}, {1, 2}, {2, 1}, {2, 1 << 39}, {3, 5}, {1 << 20, 0}} {
		n := memberNumber(c.term, c.last)
		if node, got := member(fmt.Sprintf("a.1#%d", n)); n <= last || got != n || node != "a.1" {
			t.Errorf("term %d, entry %d: %d behind %d", c.term, c.last, n, last)
		}
		last = n
	}
}

// A cluster is one ordered map, at every node: also at those that hold nothing of a range, and while ranges split.
func TestOrderedMap(t *testing.T) {
	in(t, true, "abcde", func(w *world, at func(string) *Node) {
		rng := rand.New(rand.NewPCG(uint64(w.chance(1<<30)), 1))
		model := map[string]string{}
		key := func() string { return fmt.Sprintf("%03d", rng.IntN(300)) }
		for round := range seed.Times(300, 3000) {
			n := at(string("abcde"[rng.IntN(5)]))
			if round%40 == 20 {
				w.do(n, Step{Kind: Split, Key: key()})
			}
			var b pandoserver.Bounds
			b.Lo, b.Hi = key(), key()
			b.From, b.To, b.Descending = pandoserver.Edge(rng.IntN(3)), pandoserver.Edge(rng.IntN(3)), rng.IntN(2) == 0
			var within []string
			for _, k := range slices.Sorted(maps.Keys(model)) {
				if (b.From == pandoserver.Open || k > b.Lo || k == b.Lo && b.From == pandoserver.With) && (b.To == pandoserver.Open || k < b.Hi || k == b.Hi && b.To == pandoserver.With) {
					within = append(within, k)
				}
			}
			if b.Descending {
				slices.Reverse(within)
			}
			switch rng.IntN(8) {
			case 0, 1, 2: // a batch
				size := 1 + rng.IntN(50)
				ops, keys, vals, found := make([]pando.Op, size), make([]string, size), make([][]byte, size), make([]bool, size)
				want, had := make([]string, size), make([]bool, size)
				for i := range size {
					ops[i], keys[i] = []pando.Op{pando.OpGet, pando.OpSet, pando.OpSet, pando.OpDelete}[rng.IntN(4)], key()
					want[i], had[i] = model[keys[i]], model[keys[i]] != ""
					switch ops[i] {
					case pando.OpSet:
						vals[i] = []byte(strings.Repeat("v", 1+rng.IntN(2000)))
						model[keys[i]] = string(vals[i])
					case pando.OpDelete:
						delete(model, keys[i])
					}
				}
				if err := n.Apply(ops, keys, vals, found); err != nil {
					t.Fatal(err)
				}
				for i := range size {
					if found[i] != had[i] || string(vals[i]) != want[i] {
						t.Fatalf("round %d: operation %d on %s reports %t, %d bytes; want %t, %d", round, i, keys[i], found[i], len(vals[i]), had[i], len(want[i]))
					}
				}
			case 3:
				k := key()
				want := model[k]
				err := n.Update(k, func(old []byte, had bool) ([]byte, bool) {
					if string(old) != want || had != (want != "") {
						t.Errorf("an update is told %q, %t; want %q", old, had, want)
					}
					return []byte("updated"), round%3 != 0
				})
				if err != nil {
					t.Fatal(err)
				}
				if model[k] = "updated"; round%3 == 0 {
					delete(model, k)
				}
			case 4:
				if rng.IntN(4) > 0 {
					b.Lo, b.From, b.To = b.Hi, pandoserver.With, pandoserver.With
					within = nil
					if _, ok := model[b.Hi]; ok {
						within = []string{b.Hi}
					}
				}
				deleted, err := n.DeleteRange(b)
				if err != nil || deleted != len(within) {
					t.Fatalf("%+v: %d were deleted of %d, %v", b, deleted, len(within), err)
				}
				for _, k := range within {
					delete(model, k)
				}
			case 5:
				if c := n.Count(b); c != len(within) || n.Len() != len(model) {
					t.Fatalf("%+v: %d are counted of %d, and %d of %d", b, c, len(within), n.Len(), len(model))
				}
				all := slices.Sorted(maps.Keys(model))
				i := rng.IntN(len(all) + 2)
				if k, v, ok := n.At(i); ok != (i < len(all)) || ok && (k != all[i] || string(v) != model[k]) {
					t.Fatalf("entry %d of %d is %q, %t", i, len(all), k, ok)
				}
			default:
				i, limit := 0, rng.IntN(400)
				for k, v := range n.Scan(b) {
					if i >= len(within) || within[i] != k || string(v) != model[k] {
						t.Fatalf("round %d: %+v: entry %d is %q; want %v", round, b, i, k, within)
					}
					if i++; i > limit {
						break
					}
				}
				if i != min(limit+1, len(within)) {
					t.Fatalf("%+v: %d entries of %d", b, i, len(within))
				}
			}
		}
		if err := w.whole(5); err != nil {
			t.Fatal(err)
		}
		if err := w.agree(); err != nil {
			t.Error(err)
		}
	})
}

// An entry by its number is there as long as so many are, whatever comes and goes in other ranges meanwhile.
func TestEntryBesideChanges(t *testing.T) {
	in(t, false, "ab", func(w *world, at func(string) *Node) {
		for i := range 10 {
			w.set(at("a"), fmt.Sprintf("k%d", i), "v")
			w.set(at("a"), fmt.Sprintf("p%d", i), "v")
		}
		w.do(at("a"), Step{Kind: Split, Key: "p"})
		var all sync.WaitGroup
		stop := make(chan struct{})
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(200 * time.Microsecond):
					w.set(at("a"), "k5", "v")
					time.Sleep(200 * time.Microsecond)
					if _, err := at("a").DeleteRange(pandoserver.Prefix("k5")); err != nil {
						t.Error(err)
					}
				}
			}
		})
		for range 100 {
			if k, _, ok := at("b").At(9); !ok || k != "k9" && k != "p0" {
				t.Errorf("entry 9 of 19 or 20 is %q, %t", k, ok)
				break
			}
		}
		close(stop)
		all.Wait()
	})
}

// A range that has too much under way has done nothing, and whoever waits for it in vain is told.
func TestBusy(t *testing.T) {
	in(t, false, "a", func(w *world, at func(string) *Node) {
		n, ctx := at("a"), context.Background()
		w.set(n, "k", "v")
		res, _, err := n.propose(ctx, 1, machine.Open())
		for seq := uint64(2); seq < 1026 && err == nil; seq++ { // of which none is ever acknowledged
			_, _, err = n.propose(ctx, 1, machine.Call{Session: res.ID, Seq: seq, Acked: 1}.Clear(machine.Span{Lo: "x", Hi: "x", Before: true}))
		}
		if err != nil {
			t.Fatal(err)
		}
		s := n.session(sessionKey{id: 1})
		s.id, s.next, s.open = res.ID, 2000, map[uint64]bool{1: true}
		if deleted, err := n.DeleteRange(pandoserver.Prefix("k")); !errors.Is(err, ErrUnavailable) {
			t.Errorf("%d keys are deleted: %v", deleted, err)
		}
		short, cancel := context.WithTimeout(ctx, 10*beat)
		defer cancel()
		if err := n.Do(short, Step{Kind: Split, Range: 1, Key: "c"}); err == nil {
			t.Error("a range is split")
		}
		if err := n.Apply([]pando.Op{pando.OpSet}, []string{"k"}, [][]byte{nil}, nil); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a key is set: %v", err)
		}
		if v, err := get(n, "k"); v != "v" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
	})
}

// A change of several ranges is known to have done nothing only if it has done nothing in each.
func TestErrorsOfSeveralRanges(t *testing.T) {
	in(t, false, "a", func(w *world, at func(string) *Node) {
		n := at("a")
		w.set(n, "k", "v")
		w.do(n, Step{Kind: Split, Key: "m"})
		w.set(n, "n", "v")
		for _, first := range []string{"k", "n"} {
			err := n.inGroups(context.Background(), []string{"k", "n"}, func(g *group) (bool, error) {
				if g.bounds.Contains(first) {
					return false, ErrUnavailable
				}
				return false, ErrUnknown
			})
			if !errors.Is(err, ErrUnknown) {
				t.Errorf("%q is known to be undone, and the other is not: %v", first, err)
			}
		}
		if err := partly(errRefused, true); !errors.Is(err, ErrUnknown) || errors.Is(err, errRefused) {
			t.Errorf("half is done: %v", err)
		}
	})
}

// A batch of some megabytes is parts and one commit; so many bytes are several answers.
func TestLargeBatch(t *testing.T) {
	inLarge(t, true, 256, "abc", func(w *world, at func(string) *Node) {
		w.add("d", "a")
		const count = 30
		keys, vals := make([]string, count), make([][]byte, count)
		for i := range keys {
			keys[i], vals[i] = fmt.Sprint(i), bytes.Repeat([]byte{byte(i)}, 400_000)
		}
		if err := at("b").Apply(slices.Repeat([]pando.Op{pando.OpSet}, count), keys, vals, nil); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"c", "d"} { // d has no replica, and gets the values in several answers
			got, found := make([][]byte, count), make([]bool, count)
			if hits := at(name).GetBatch(keys, got, found); hits != count || !bytes.Equal(got[7], vals[7]) || !bytes.Equal(got[29], vals[29]) {
				t.Errorf("%d of %d are there", hits, count)
			}
		}
		if err := w.agree(); err != nil {
			t.Error(err)
		}
	})
}

// A batch in parts that takes long does not hold up others, of which only so many may wait to be acked.
func TestBesideSlowBatch(t *testing.T) {
	in(t, false, "a", func(w *world, at func(string) *Node) {
		n := at("a")
		slow := n.session(sessionKey{1, true})
		large := func() {
			if err := n.Apply([]pando.Op{pando.OpSet}, []string{"large"}, [][]byte{make([]byte, 1<<20)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		large()
		ctx, cancel := n.operation()
		defer cancel()
		c, err := n.beginCall(ctx, 1, slow)
		if err != nil || c.Seq != 2 {
			t.Fatalf("%+v, %v", c, err)
		}
		begin := time.Now()
		for range 1100 {
			w.set(n, "k", "v")
		}
		if took := time.Since(begin); took > 10*beat {
			t.Errorf("1100 changes beside a batch take %v", took)
		}
		slow.done(c, false)
		large()
	})
}

// What is too long for a cluster is refused, and not asked for again and again; a bound may be as long as it likes.
func TestTooLong(t *testing.T) {
	in(t, false, "ab", func(w *world, at func(string) *Node) {
		long := "k" + strings.Repeat("x", 25<<20)
		for i, name := range []string{"a", "b"} { // b has no replica
			n := at(name)
			begin := time.Now()
			for _, k := range []string{"a", "k", "ky", "z"} {
				w.set(n, k, k)
			}
			set, del := []pando.Op{pando.OpSet}, []pando.Op{pando.OpDelete}
			for what, err := range map[string]error{
				"a key":              n.Apply(set, []string{long}, [][]byte{nil}, nil),
				"a value":            n.Apply(set, []string{"k"}, [][]byte{[]byte(long)}, nil),
				"a key that goes":    n.Apply(del, []string{long}, nil, []bool{false}),
				"an updated value":   n.Update("k", func([]byte, bool) ([]byte, bool) { return []byte(long), true }),
				"a key with a value": n.Update(long, func([]byte, bool) ([]byte, bool) { return nil, true }),
			} {
				if !errors.Is(err, ErrTooLong) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if v, err := get(n, long); v != "" || err != nil {
				t.Errorf("%d bytes, %v", len(v), err)
			}
			from := pandoserver.Bounds{Lo: long, From: pandoserver.With}
			to := pandoserver.Bounds{Hi: long, To: pandoserver.Without}
			if up, down := n.Count(from), n.Count(to); up != 2 || down != 2+30*i {
				t.Errorf("%d keys above, %d below", up, down)
			}
			if deleted, err := n.DeleteRange(from); deleted != 2 || err != nil {
				t.Errorf("%d keys deleted, %v", deleted, err)
			}
			// Values that are too many to be reported are not taken, either.
			ops, keys, vals := make([]pando.Op, 30), make([]string, 30), make([][]byte, 30)
			for j := range keys {
				ops[j], keys[j] = pando.OpDelete, fmt.Sprint(j)
				if i == 0 {
					w.set(n, keys[j], long[:1<<20])
				}
			}
			if err := n.Apply(ops, keys, vals, make([]bool, 30)); !errors.Is(err, ErrTooLong) {
				t.Errorf("30 MiB are reported, %v", err)
			}
			if took := time.Since(begin); took > 10*beat {
				t.Errorf("it takes %v", took)
			}
		}
		ops, keys, found := make([]pando.Op, 30), make([]string, 30), make([]bool, 30)
		for j := range keys {
			ops[j], keys[j] = pando.OpDelete, fmt.Sprint(j)
		}
		if err := at("b").Apply(ops, keys, nil, found); err != nil || slices.Contains(found, false) {
			t.Errorf("%v, %v", found, err)
		}
	})
}

// Several of a node's clients add to one key: no addition is lost, and none is done twice.
func TestUpdatesBesideEachOther(t *testing.T) {
	in(t, true, "abc", func(w *world, at func(string) *Node) {
		var all sync.WaitGroup
		for _, name := range []string{"a", "b", "c"} {
			all.Go(func() {
				for range 10 {
					err := at(name).Update("k", func(old []byte, had bool) ([]byte, bool) { return value(number(old, had) + 1), true })
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if v, err := get(at("a"), "k"); v != "30" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
	})
}

// A replica of a new range that never heard of the split votes all the same: without it, and with another of the three
// lost, the range would have no leader.
func TestThirdVotes(t *testing.T) {
	in(t, false, "abc", func(w *world, at func(string) *Node) {
		w.replicate(mapRange, at("b"), at("c"))
		w.replicate(1, at("b"), at("c"))
		w.set(at("a"), "m", "v")
		w.do(at("a"), Step{Kind: MoveLead, Range: 1, Node: at("a").ID()})
		w.setCut("a", "c", true)
		w.setCut("b", "c", true)
		w.do(at("a"), Step{Kind: Split, Key: "k"})
		time.Sleep(10 * beat)
		w.all["a"].kill()
		time.Sleep(2 * beat)
		// c hears b of the new range, and of nothing else: nobody tells it of the split.
		w.setCut("b", "c", false)
		if v, err := get(at("b"), "m"); v != "v" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
		w.set(at("c"), "n", "w")
		w.all["a"].start()
		if err := w.agree(); err != nil {
			t.Error(err)
		}
	})
}

// A node that has left a range has nothing of it, does not begin it again when it replays the split that made it, and
// gets another number when it comes back.
func TestLeftForGood(t *testing.T) {
	in(t, false, "abc", func(w *world, at func(string) *Node) {
		w.replicate(mapRange, at("b"), at("c"))
		w.replicate(1, at("b"), at("c"))
		w.set(at("a"), "m", "v")
		w.do(at("a"), Step{Kind: Split, Key: "k"})
		w.set(at("a"), "m", "w")
		b := at("b")
		w.do(at("a"), Step{Kind: RemoveReplica, Range: 2, Node: b.ID()})
		for range 30 {
			time.Sleep(beat)
			if b.replica(2) == nil {
				break
			}
		}
		if r := b.replica(2); r != nil || slices.Contains(b.log.Groups(), 2) || b.tree.Has("m") {
			t.Fatalf("%v, groups %v", r, b.log.Groups())
		}
		_, err := b.addressed(2, b.ID()+"#1")
		if err == nil {
			t.Error("a replica that has left is begun by a message of long ago")
		}
		w.all["b"].kill()
		w.all["b"].start()
		time.Sleep(10 * beat)
		if r := at("b").replica(2); r != nil {
			t.Errorf("%s is back", r.Self())
		}
		w.replicate(2, at("b"))
		r := at("b").replica(2)
		if _, number := member(r.Self()); number < 2 {
			t.Errorf("it is %s once more", r.Self())
		}
		w.set(at("c"), "m", "x")
		if v, err := get(at("b"), "m"); v != "x" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
		if err := w.agree(); err != nil {
			t.Error(err)
		}
	})
}

// A member that was removed while others waited for it to catch up gets no vote: it never comes back, and its vote would be missed.
func TestRemovedBeforeItsVote(t *testing.T) {
	in(t, false, "ab", func(w *world, at func(string) *Node) {
		a, b := at("a"), at("b")
		w.set(a, "k", "v")
		w.do(a, Step{Kind: AddReplica, Range: 1, Node: b.ID()})
		for range 20 {
			time.Sleep(beat)
		}
		w.pause("b")
		done := make(chan error)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*beat)
			defer cancel()
			done <- a.Do(ctx, Step{Kind: Promote, Range: 1, Node: b.ID()})
		}()
		time.Sleep(beat)
		w.do(a, Step{Kind: RemoveReplica, Range: 1, Node: b.ID()})
		w.resume("b")
		if err := <-done; err == nil {
			t.Error("it has a vote")
		}
		if members := a.replica(1).Members(); len(members) != 1 {
			t.Errorf("members are %v", members)
		}
	})
}

// A member has caught up by what it has itself, and not by what another has that was there before it.
func TestCaughtUpByMember(t *testing.T) {
	in(t, false, "ab", func(w *world, at func(string) *Node) {
		a := at("a")
		w.replicate(1, at("b"))
		w.set(a, "k", "v")
		time.Sleep(5 * beat)
		is := at("b").replica(1).Self()
		for _, id := range []string{is, is + "0"} {
			ctx, cancel := context.WithTimeout(context.Background(), 5*beat)
			if err := a.caughtUp(ctx, a.replica(1), 1, id); (err == nil) != (id == is) {
				t.Errorf("%s, which is %s: %v", id, is, err)
			}
			cancel()
		}
	})
}

// deposed is a leader that others have replaced while it asked, and that may lead again.
type deposed struct {
	terms []uint64
	leads bool
}

func (d *deposed) Term() (term uint64) {
	term, d.terms = d.terms[0], d.terms[1:]
	return term
}
func (d *deposed) Leads() bool                   { return d.leads }
func (d *deposed) Members() []consensus.Member   { return []consensus.Member{{ID: "a#1", Voter: true}} }
func (d *deposed) Barrier(context.Context) error { return nil }

// Somebody is told that it was removed only by a leader that has led all the time: others may have undone the removal.
func TestRemovedUnderOneLeader(t *testing.T) {
	for _, c := range []struct {
		d  deposed
		ok bool
	}{{deposed{[]uint64{3, 3}, true}, true}, {deposed{[]uint64{3, 5}, true}, false}, {deposed{[]uint64{3, 3}, false}, false}} {
		for _, id := range []string{"a#1", "b#2"} {
			d := c.d
			is, err := isMember(context.Background(), &d, id)
			if (err == nil) != c.ok || c.ok && is != (id == "a#1") {
				t.Errorf("%+v: %s is a member: %t, %v", c.d, id, is, err)
			}
		}
	}
}

// A node that was to found a cluster, and ended in between, has nothing of that when it joins another.
func TestHalfAFounder(t *testing.T) {
	in(t, false, "a", func(w *world, at func(string) *Node) {
		c := &computer{w: w, name: "b", logs: crash.New(), snaps: crash.New(), join: []string{"a"}}
		var made atomic.Int32
		c.snaps.SetBefore(func(_ int, what string) {
			if strings.HasPrefix(what, "rename") {
				made.Add(1)
			}
		})
		c.logs.SetFail(func(int, string) (f crash.Fault) {
			if made.Load() == 2 {
				f.Err = syscall.EIO
			}
			return f
		})
		if n, err := open(c.logs, c.snaps, Options{Name: "b", Addr: "b", Transport: c, Beat: beat}); err == nil || made.Load() != 2 {
			t.Fatal(n, err, made.Load())
		}
		c.logs, c.snaps = w.image(c.logs), w.image(c.snaps)
		w.all["b"] = c
		c.start()
		time.Sleep(10 * beat)
		if b := at("b"); b.replica(mapRange) != nil || b.replica(1) != nil || b.Cluster() != at("a").Cluster() {
			t.Errorf("it has ranges of a cluster of its own, in %s of %s", b.Cluster(), at("a").Cluster())
		}
		w.set(at("b"), "k", "v")
		if v, err := get(at("a"), "k"); v != "v" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
	})
}

// A child that the others have begun and split before this node could begin it comes as they have it now.
func TestChildOfLongAgo(t *testing.T) {
	in(t, false, "abc", func(w *world, at func(string) *Node) {
		a, c := at("a"), at("c")
		w.replicate(1, at("b"))
		w.do(a, Step{Kind: Split, Key: "k"})
		before, err := machine.Empty(2, machine.Bounds{Lo: "k"})
		if err != nil {
			t.Fatal(err)
		}
		defer before.Close()
		w.set(a, "l", "v")
		w.set(a, "n", "v")
		w.do(a, Step{Kind: Split, Key: "m"})
		w.replicate(3, c)
		if err := c.snapshots.Put(context.Background(), 2, []string{a.ID() + "#1", c.ID() + "#1"}, before); err != nil {
			t.Fatal(err)
		}
		c.tree.Set("kk", nil) // as its parent has left it here
		c.hurry()
		w.replicate(2, c)
		if err := w.agree(); err != nil {
			t.Error(err)
		}
		w.set(c, "l", "w")
	})
}

// A node that asks many others in vain whether it is a member begins other ranges meanwhile.
func TestDoubtsBesideStarts(t *testing.T) {
	in(t, false, "abcdef", func(w *world, at func(string) *Node) {
		w.replicate(mapRange, at("b"), at("c"), at("d"), at("e"), at("f"))
		for _, name := range []string{"a", "c", "d", "e", "f"} {
			w.setCut("b", name, true)
		}
		b := at("b")
		time.Sleep(12 * beat)
		one, err := machine.Empty(9, machine.Bounds{Lo: "x", Hi: "y"})
		if err != nil {
			t.Fatal(err)
		}
		defer one.Close()
		if err := b.snapshots.Put(context.Background(), 9, []string{b.ID() + "#1"}, one); err != nil {
			t.Fatal(err)
		}
		b.hurry()
		time.Sleep(beat / 2)
		if b.replica(9) == nil {
			t.Error("a range waits for others' answers about another")
		}
	})
}

// A replica that is about to start when its node is closed is closed, too.
func TestCloseBesideStart(t *testing.T) {
	in(t, false, "ab", func(w *world, at func(string) *Node) {
		b := at("b")
		w.all["b"].slow.Store(int64(2 * beat))
		started := make(chan error)
		go func() {
			_, err := b.addressed(7, b.ID()+"#1")
			started <- err
		}()
		time.Sleep(beat)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := b.addressed(8, b.ID()+"#1"); err == nil {
			t.Error("a closed node starts a replica")
		}
		select {
		case <-started:
		default:
			t.Error("a replica is about to start yet")
			<-started
		}
		if all := b.running(); len(all) != 0 {
			t.Errorf("%d replicas run", len(all))
		}
	})
}

// A node whose data is gone is another: no request for the one that it was is answered, a vote's least of all.
func TestGoneIsAnother(t *testing.T) {
	in(t, false, "ab", func(w *world, at func(string) *Node) {
		was := at("b").ID()
		w.replicate(1, at("b"))
		self := at("b").replica(1).Self()
		w.all["b"].wipe()
		w.all["b"].start()
		if at("b").ID() == was {
			t.Fatal("it has the same ID")
		}
		a := at("a")
		vote := packet.Bytes(packet.Bytes([]byte{askReplica}, a.Cluster()), was)
		vote = packet.Bytes(packet.Uint(vote, 1), self)
		if _, err := at("b").Serve(context.Background(), "a", append(vote, 2), nil); err == nil || at("b").replica(1) != nil {
			t.Errorf("a request for who it was is answered: %v", err)
		}
		other := packet.Bytes(packet.Bytes([]byte{askState}, "another cluster"), at("b").ID())
		if _, err := at("b").Serve(context.Background(), "a", packet.Uint(other, 1), nil); err == nil {
			t.Error("a request of another cluster is answered")
		}
	})
}

// A leader that is to leave hands over first. The last replica with a vote stays.
func TestLeaderLeaves(t *testing.T) {
	in(t, false, "abc", func(w *world, at func(string) *Node) {
		w.replicate(mapRange, at("b"), at("c"))
		w.replicate(1, at("b"), at("c"))
		w.set(at("a"), "k", "v")
		for _, name := range []string{"a", "b"} {
			w.do(at("c"), Step{Kind: MoveLead, Range: 1, Node: at(name).ID()})
			w.do(at("c"), Step{Kind: RemoveReplica, Range: 1, Node: at(name).ID()})
			w.set(at(name), "k", name)
		}
		if err := at("a").Do(context.Background(), Step{Kind: RemoveReplica, Range: 1, Node: at("c").ID()}); err == nil || errors.Is(err, ErrUnavailable) {
			t.Errorf("the last replica leaves: %v", err)
		}
		time.Sleep(20 * beat)
		if at("a").replica(1) != nil || at("b").replica(1) != nil {
			t.Error("replicas that have left are there")
		}
		if v, err := get(at("a"), "k"); v != "b" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
	})
}

// A stale read says how old it is at most, and is never older, whatever the node is cut off from, and however slow its disk is.
func TestStaleReads(t *testing.T) {
	in(t, false, "abc", func(w *world, at func(string) *Node) {
		w.replicate(mapRange, at("b"), at("c"))
		w.replicate(1, at("b"), at("c"))
		w.do(at("a"), Step{Kind: MoveLead, Range: 1, Node: at("a").ID()})
		type ack struct {
			at time.Time
			n  int
		}
		acks := []ack{{time.Now(), 0}}
		write := func() {
			n := acks[len(acks)-1].n + 1
			w.set(at("a"), "k", fmt.Sprint(n))
			acks = append(acks, ack{time.Now(), n})
		}
		old, now := 0, 0
		read := func(bound time.Duration) error {
			vals, found := [][]byte{nil}, []bool{false}
			begin := time.Now()
			age, err := at("c").GetStale(bound, []string{"k"}, vals, found)
			if err != nil {
				return err
			}
			want := 0
			for _, a := range acks {
				if a.at.Before(begin.Add(-age)) {
					want = a.n
				}
			}
			if got := number(vals[0], found[0]); got < want || age > bound {
				t.Fatalf("%d is %v old, of at most %v; %d was acknowledged before", got, age, bound, want)
			}
			if age > 0 {
				old++
			} else {
				now++
			}
			return nil
		}
		for range seed.Times(60, 3000) {
			switch w.chance(8) {
			case 0:
				w.setCut("c", "a", w.chance(2) == 0)
			case 1:
				w.setCut("c", "b", w.chance(2) == 0)
			case 2:
				w.all["c"].slow.Store(int64(w.chance(2)) * int64(beat))
			}
			write()
			_ = read(time.Duration(w.chance(60)) * beat)
			time.Sleep(time.Duration(w.chance(int(beat))))
		}
		if old == 0 || now == 0 {
			t.Errorf("%d old ones and %d of now", old, now)
		}
		t.Logf("%d old reads, %d of now", old, now)
		// As long as the bound it needs nobody.
		w.all["c"].slow.Store(0)
		w.setCut("c", "a", false)
		w.setCut("c", "b", false)
		for since := time.Duration(1 << 62); since > beat; { // it may have much to catch up
			time.Sleep(beat)
			if err := read(0); err != nil {
				t.Fatal(err)
			}
			if at, ok := at("c").replica(1).Since(); ok {
				since = time.Since(at)
			}
		}
		w.setCut("c", "a", true)
		w.setCut("c", "b", true)
		time.Sleep(10 * beat)
		write()
		begin := time.Now()
		if err := read(15 * beat); err != nil || time.Since(begin) > 0 {
			t.Errorf("it takes %v, %v", time.Since(begin), err)
		}
		time.Sleep(10 * beat)
		if err := read(15 * beat); !errors.Is(err, ErrUnavailable) {
			t.Errorf("what is too old is read: %v", err)
		}
	})
}

// Without a majority nothing is answered, and it says so.
func TestNoMajority(t *testing.T) {
	in(t, true, "abc", func(w *world, at func(string) *Node) {
		w.set(at("a"), "k", "v")
		w.all["b"].kill()
		w.all["c"].kill()
		if _, err := get(at("a"), "k"); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a read: %v", err)
		}
		if err := at("a").Apply([]pando.Op{pando.OpSet}, []string{"k"}, [][]byte{nil}, nil); !errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrUnknown) {
			t.Errorf("a change: %v", err)
		}
		w.all["b"].start()
		if v, err := get(at("a"), "k"); err != nil || v != "v" && v != "" {
			t.Errorf("%q, %v", v, err)
		}
	})
}

// Operations under way when a node is closed return, and Close does.
func TestCloseBesideOperations(t *testing.T) {
	for range seed.Times(3, 30) {
		in(t, true, "abc", func(w *world, at func(string) *Node) {
			var all sync.WaitGroup
			n := at("a")
			for i := range 50 {
				all.Go(func() {
					for {
						err := n.Apply([]pando.Op{pando.OpSet}, []string{fmt.Sprint(i)}, [][]byte{nil}, nil)
						if _, failed := get(n, "1"); err != nil && failed != nil {
							return
						}
					}
				})
			}
			time.Sleep(time.Duration(w.chance(int(beat))))
			w.all["a"].kill()
			all.Wait()
		})
	}
}

// A leader whose disk has failed does not keep others from leading, though nobody has ended its process yet.
func TestFailedLeader(t *testing.T) {
	in(t, false, "abc", func(w *world, at func(string) *Node) {
		w.replicate(mapRange, at("b"), at("c"))
		w.replicate(1, at("b"), at("c"))
		w.do(at("b"), Step{Kind: MoveLead, Range: 1, Node: at("b").ID()})
		w.set(at("a"), "k", "v")
		b := at("b")
		w.all["b"].logs.SetFail(func(int, string) crash.Fault { return crash.Fault{Err: syscall.EIO} })
		if err := b.Apply([]pando.Op{pando.OpSet}, []string{"k"}, [][]byte{[]byte("w")}, nil); err == nil {
			t.Error("a node whose disk has failed has done something")
		}
		<-b.Failed()
		w.set(at("a"), "k", "x")
		if v, err := get(at("c"), "k"); v != "x" || err != nil {
			t.Errorf("%q, %v", v, err)
		}
		if _, err := get(b, "k"); !errors.Is(err, ErrClosed) {
			t.Errorf("a node that has failed answers: %v", err)
		}
		w.all["b"].kill()
	})
}
