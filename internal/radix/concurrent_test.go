package radix

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/shortcut"
	"github.com/pando-index/pando/internal/stall"
)

// hurry makes memory be used again as soon as may be, so that late readers meet
// others' nodes.
func hurry(t *testing.T) {
	look := atomic.SwapInt64(&dropsPerLook, 1) // atomic, as forgotten trees end beside the test
	wait := epoch.SetPace(2 * time.Microsecond)
	undo := stall.Use(func(string) { // in builds with stalls
		switch n := rand.IntN(2000); {
		case n == 0:
			time.Sleep(time.Duration(rand.IntN(100)) * time.Microsecond)
		case n < 200:
			runtime.Gosched()
		}
	})
	t.Cleanup(func() {
		atomic.StoreInt64(&dropsPerLook, look)
		wait()
		undo()
	})
}

// Readers find what is always there, with its value, while writers change all
// that is around it, and iterations pass it in order.
func TestReadersBesideWriters(t *testing.T) {
	hurry(t)
	s := seed.Of(t)
	tree := New(0)
	defer tree.Close()
	key := func(i int) string { return fmt.Sprintf("%s%03d", strings.Repeat("ab", i%7), i) }
	const always = 200
	for i := range always {
		tree.Set(key(2*i), uint64(2*i))
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	start := func(n int, f func(rng *rand.Rand)) {
		for g := range n {
			wg.Add(1)
			rng := rand.New(rand.NewPCG(s, uint64(g)))
			go func() {
				defer wg.Done()
				for !stop.Load() && !t.Failed() {
					f(rng)
				}
			}()
		}
	}
	start(2, func(rng *rand.Rand) { churn(tree, rng, key, always) })
	start(1, func(rng *rand.Rand) {
		i := 2 * rng.IntN(always)
		if v, ok := tree.Get(key(i)); v != uint64(i) || !ok {
			t.Errorf("Get(%q) = %d, %t", key(i), v, ok)
		}
		checkBatch(t, tree, rng, key, always)
	})
	start(1, func(rng *rand.Rand) { checkPass(t, tree.Cursor(), rng.IntN(2) == 0, always) })
	start(1, func(*rand.Rand) {
		snap, err := tree.Snapshot()
		if err != nil {
			t.Error(err)
			return
		}
		n := checkPass(t, snap.Cursor(), false, always)
		if n != snap.Len() {
			t.Errorf("%d entries in a snapshot of %d", n, snap.Len())
		}
		snap.Close()
	})
	time.Sleep(besideTime())
	stop.Store(true)
	wg.Wait()
	mustCheck(t, tree)
}

// churn changes keys that are not always there.
func churn(tree *Tree, rng *rand.Rand, key func(int) string, always int) {
	odd := func() string { return key(2*rng.IntN(always)+1) + letters(rng, rng.IntN(3), "xyz") }
	switch rng.IntN(6) {
	case 0, 1, 2:
		tree.Set(odd(), 1)
	case 3, 4:
		tree.Delete(odd())
	case 5:
		o := &Ops{Kind: op.Set, Keys: make([]string, 20), Vals: make([]uint64, 20)}
		for i := range o.Keys {
			o.Keys[i] = odd()
		}
		tree.Apply(o)
		o.Kind = op.Delete
		tree.Apply(o)
	}
}

func checkBatch(t *testing.T, tree *Tree, rng *rand.Rand, key func(int) string, always int) {
	keys, vals, found := make([]string, 60), make([]uint64, 60), make([]bool, 60)
	for i := range keys {
		keys[i] = key(2 * rng.IntN(always))
	}
	tree.GetBatch(keys, vals, found, 1, nil)
	for i, k := range keys {
		if !found[i] || !strings.HasSuffix(k, fmt.Sprintf("%03d", vals[i])) {
			t.Errorf("GetBatch: %q is %d, %t", k, vals[i], found[i])
		}
	}
}

// checkPass goes through all entries, and counts those that are always there.
func checkPass(t *testing.T, c *Cursor, down bool, always int) (n int) {
	last, even := "", 0
	c.MoveEnd(down)
	for {
		k, _, ok := c.Next()
		if !ok {
			break
		}
		if n > 0 && (k <= last) != down {
			t.Errorf("%q after %q, down %t", k, last, down)
		}
		last = k
		n++
		if digits := strings.TrimLeft(k, "ab"); len(digits) == 3 && (digits[2]-'0')%2 == 0 {
			even++
		}
	}
	if even != always {
		t.Errorf("%d of %d entries passed", even, always)
	}
	return n
}

// Two writers that count up together lose nothing.
func TestUpdatesAreAtomic(t *testing.T) {
	hurry(t)
	tree := New(0)
	defer tree.Close()
	var wg sync.WaitGroup
	const each = 2000
	for range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range each {
				key := fmt.Sprint("counter", i%5)
				if _, _, err := tree.Update(key, func(old uint64, _ bool, _ uint64) (uint64, bool) { return old + 1, true }); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	sum := uint64(0)
	for i := range 5 {
		v, _ := tree.Get(fmt.Sprint("counter", i))
		sum += v
	}
	if sum != 3*each {
		t.Errorf("%d, want %d", sum, 3*each)
	}
}

// What a writer has written before it set a key is seen by whoever finds the key.
func TestHappensBefore(t *testing.T) {
	tree := New(0)
	defer tree.Close()
	data := make([]int, 100)
	go func() {
		for i := range data {
			data[i] = i + 1
			tree.Set(fmt.Sprint(i), uint64(i))
		}
	}()
	for i := range data {
		for {
			if _, ok := tree.Get(fmt.Sprint(i)); ok {
				break
			}
			time.Sleep(time.Microsecond)
		}
		if data[i] != i+1 {
			t.Fatal("data not seen")
		}
	}
}

// writerOps is what each of several writers does to its keys, which lie between those
// of the others, and to keys that all share.
func writerOps(t *testing.T, tree *Tree, rng *rand.Rand, me, writers int, m model) {
	own := func() string {
		return letters(rng, rng.IntN(3), "ab") + string(rune('A'+rng.IntN(6)*writers+me)) + letters(rng, rng.IntN(5)/4, "x")
	}
	switch n := rng.IntN(100); {
	case n < 36:
		k, v := own(), rng.Uint64()
		old, had, err := tree.Set(k, v)
		if was, there := m[k]; old != was || had != there || err != nil {
			t.Errorf("Set(%q) was %d, %t, %v; want %d, %t", k, old, had, err, was, there)
		}
		m[k] = v
	case n < 68:
		k := own()
		old, had, err := tree.Delete(k)
		if was, there := m[k]; old != was || had != there || err != nil {
			t.Errorf("Delete(%q) was %d, %t, %v; want %d, %t", k, old, had, err, was, there)
		}
		delete(m, k)
	case n < 75:
		tree.Set(letters(rng, rng.IntN(3), "abc"), 1)
	case n < 83:
		tree.Delete(letters(rng, rng.IntN(3), "abc"))
	case n < 96:
		k := own()
		v, ok := tree.Get(k)
		if was, there := m[k]; v != was || ok != there {
			t.Errorf("Get(%q) = %d, %t; want %d, %t", k, v, ok, was, there)
		}
	case n < 98:
		o, old, found := drawOps(rng, 1+rng.IntN(40), m, func(*rand.Rand) string { return own() })
		if err := tree.Apply(o); err != nil || !slices.Equal(o.Old, old) || !slices.Equal(o.Found, found) {
			t.Errorf("a batch of %d reports something else: %v", len(o.Keys), err)
		}
	default:
		tree.Rank(own(), rng.IntN(2) == 0)
		tree.At(rng.IntN(20))
	}
}

// besideTime returns how long goroutines work beside each other.
func besideTime() time.Duration {
	if stall.On {
		return seed.Lasting(0, 1500*time.Millisecond)
	}
	return seed.Lasting(200*time.Millisecond, 700*time.Millisecond)
}

// Writers that change the same nodes at once lose nothing: each finds what it has
// left, beside others who take snapshots.
func TestWritersBesideWriters(t *testing.T) {
	for _, snapshots := range []bool{false, true} {
		t.Run(fmt.Sprintf("snapshots=%t", snapshots), func(t *testing.T) { writersBeside(t, snapshots) })
	}
}

func writersBeside(t *testing.T, snapshots bool) {
	hurry(t)
	s := seed.Of(t)
	tree := New(0)
	defer tree.Close()
	const writers = 4
	var stop atomic.Bool
	var wg sync.WaitGroup
	models := make([]model, writers)
	for g := range writers {
		models[g] = model{}
		wg.Add(1)
		go func() {
			defer wg.Done()
			rng := rand.New(rand.NewPCG(s, uint64(g)))
			for !stop.Load() && !t.Failed() {
				writerOps(t, tree, rng, g, writers, models[g])
			}
		}()
	}
	for end := time.Now().Add(besideTime()); time.Now().Before(end) && !t.Failed(); {
		if snapshots {
			snap := mustSnapshot(t, tree)
			checkRanks(t, snap)
			snap.Close()
		}
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		if err := tree.Check(); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	wg.Wait()
	mustCheck(t, tree)
	for _, k := range []string{"", "a", "b", "c"} {
		for _, x := range []string{"", "a", "b", "c"} {
			tree.Delete(k + x)
		}
	}
	all := model{}
	for _, m := range models {
		maps.Copy(all, m)
	}
	rng := rand.New(rand.NewPCG(s, 99))
	compare(t, rng, tree, all, func(rng *rand.Rand) string {
		return letters(rng, rng.IntN(3), "ab") + letters(rng, rng.IntN(2), "ABCKXZ")
	})
	empty(t, tree, all)
}

// checkRanks compares what a snapshot counts with what it has.
func checkRanks(t *testing.T, snap *Snapshot) {
	t.Helper()
	c, n := snap.Cursor(), 0
	for key, _, ok := c.Next(); ok; key, _, ok = c.Next() {
		if n%7 == 0 {
			if r := snap.Rank(key, false); r != n {
				t.Errorf("%q has rank %d, want %d", key, r, n)
			}
		}
		n++
	}
	if n != snap.Len() || snap.Rank("\xff", true) != n {
		t.Errorf("%d entries in a snapshot of %d, of which %d are counted", n, snap.Len(), snap.Rank("\xff", true))
	}
}

// What a reader finds by a shortcut is what it finds from the root: a value that has
// gone does not come back. Each value is set once.
func TestShortcutsBesideWriters(t *testing.T) {
	hurry(t)
	s := seed.Of(t)
	tree := New(0)
	defer tree.Close()
	const keys = 12
	key := func(i int) string { return fmt.Sprintf("common/%x%02d", i%3, i) }
	var stop atomic.Bool
	var count atomic.Uint64
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for rng := rand.New(rand.NewPCG(s, uint64(g))); !stop.Load() && !t.Failed(); {
				k := key(rng.IntN(keys))
				switch {
				case g < 2:
					first, had := tree.Get(k)
					c := tree.Cursor()
					c.Move(k, false, false)
					now, val, there := c.Next()
					there = there && now == k && val == first
					if second, ok := tree.Get(k); had && ok && !there && second == first {
						t.Errorf("%q is %d, and then not, and then it is again", k, first)
					}
				case rng.IntN(5) < 3:
					tree.Set(k, count.Add(1))
				default:
					tree.Delete(k)
				}
			}
		}()
	}
	time.Sleep(besideTime())
	stop.Store(true)
	wg.Wait()
	mustCheck(t, tree)
}

// While a writer is held up on its way, no memory is used again that it may have met.
func TestGenerationsBesideWriters(t *testing.T) {
	if !stall.On {
		t.Skip("needs a build with stalls")
	}
	hurry(t)
	tree := New(0)
	defer tree.Close()
	for i := range 50 {
		tree.Set(fmt.Sprint("key", i), 1)
	}
	var held atomic.Bool
	met, goOn := make(chan struct{}), make(chan struct{})
	undo := stall.Use(func(point string) {
		if point == "radix: writer has found a leaf" && held.CompareAndSwap(false, true) {
			close(met)
			<-goOn
		}
	})
	defer undo()
	done := make(chan struct{})
	go func() { tree.Set("key25", 2); close(done) }()
	<-met
	gen := tree.Gen()
	for i := range 20_000 {
		tree.Delete(fmt.Sprint("key", i%50))
		tree.Set(fmt.Sprint("key", i%50), 1)
	}
	if now := tree.Gen(); now > gen+1 {
		t.Errorf("generation %d while a writer of generation %d is there", now, gen)
	}
	close(goOn)
	<-done
	mustCheck(t, tree)
}

// Whoever has added a key finds it counted, even if it was below a node that a writer has
// just made and who is held up then.
func TestRankBesideWriters(t *testing.T) {
	if !stall.On {
		t.Skip("needs a build with stalls")
	}
	defer func(least, per int64) { shortcut.Least, shortcut.PerTop = least, per }(shortcut.Least, shortcut.PerTop)
	shortcut.Least, shortcut.PerTop = 4096, 8 // so that tops are nodes that grow
	rng := seed.Rand(t)
	draw := func() string { return letters(rng, 4, "abcdefghijklmnopqrstuvwxyz") }
	tree, m := New(0), model{}
	defer tree.Close()
	set := func(key string) {
		m[key] = 1
		if _, _, err := tree.Set(key, 1); err != nil {
			t.Fatal(err)
		}
	}
	for range 8000 {
		set(draw())
	}
	for range 4000 {
		key := draw()
		beside := key[:1+rng.IntN(3)] + draw()
		m[beside] = 1
		least := int64(len(m))
		if _, had := m[key]; had {
			least--
		}
		tree.Rank("~", false) // counts all
		var begun atomic.Bool
		done := make(chan struct{})
		other := func() {
			defer close(done)
			if _, _, err := tree.Set(beside, 1); err != nil {
				t.Error(err)
			}
			if n, ok := tree.tryRank("~", true); ok && n < least {
				t.Errorf("%d entries after %q was added, want %d at least", n, beside, least)
			}
		}
		undo := stall.Use(func(point string) {
			if point != "radix: node unlocked" || begun.Swap(true) {
				return
			}
			go other()
			select {
			case <-done:
			case <-time.After(time.Millisecond): // it waits for a node that is locked
			}
		})
		set(key)
		if !begun.Swap(true) {
			other()
		}
		<-done
		undo()
	}
	mustCheck(t, tree)
}

// A count ends though writers have their turn after each part of it, and no part is larger than another.
func TestCountsInPieces(t *testing.T) {
	defer func(n int) { countPiece = n }(countPiece)
	countPiece = 1024
	rng := seed.Rand(t)
	tree := New(0)
	defer tree.Close()
	for range 30_000 {
		tree.Set(fmt.Sprint(rng.IntN(1<<30)), 0)
	}
	pieces, n := 0, int64(0)
	for ; !tree.countSome(countPiece, func(root link) { n, _ = entriesOf(root) }); pieces++ {
		if pieces > tree.countPieces() {
			t.Fatalf("%d parts of %d links, and %d entries are not counted", pieces, countPiece, tree.Len())
		}
		tree.Set(fmt.Sprint(rng.IntN(1<<30)), 0)
	}
	if int(n) != tree.Len() || pieces < 10 {
		t.Errorf("%d entries counted of %d, in %d parts", n, tree.Len(), pieces)
	}
	mustCheck(t, tree)
}
