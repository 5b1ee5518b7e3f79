package live_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/pando-index/pando/internal/blob"
	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/stall"
)

var layouts = []string{"strings", "digits", "bplus"}

// sealed returns a value of n bytes, 16 at least, that names its key and has a checksum of itself.
func sealed(rnd *rand.Rand, key, n int) []byte {
	v := make([]byte, n)
	binary.LittleEndian.PutUint64(v, uint64(key))
	for i, c := 8, byte(rnd.Uint32()); i < n-4; i++ {
		v[i] = c + byte(i)
	}
	binary.LittleEndian.PutUint32(v[n-4:], crc32.ChecksumIEEE(v[:n-4]))
	return v
}

// broken returns what is wrong with a value of a key.
func broken(key int, v []byte) error {
	if len(v) < 16 || binary.LittleEndian.Uint32(v[len(v)-4:]) != crc32.ChecksumIEEE(v[:len(v)-4]) {
		return fmt.Errorf("the value of key %d, of %d bytes, is torn", key, len(v))
	}
	if k := binary.LittleEndian.Uint64(v); k != uint64(key) {
		return fmt.Errorf("key %d has the value of key %d", key, k)
	}
	return nil
}

// numberOf returns the number that keyOf has made a key of.
func numberOf(k order.Probe) (n int) {
	if k.Text == "" {
		return int(k.Code)
	}
	fmt.Sscanf(k.Text, "key %d", &n)
	return n
}

// keysOf returns keys of a map.
func keysOf(layout string, numbers ...int) order.Keys {
	codes, texts := make([]uint64, len(numbers)), make([]string, len(numbers))
	for i, n := range numbers {
		codes[i], texts[i] = uint64(n), keyOf(n).Text
	}
	if layout == "strings" {
		return order.KeysOf(texts)
	}
	return order.KeysOf(codes)
}

type immortal struct{}

func (immortal) Alive() {}

// A key that lies where its value is appended is looked up again as it was.
func TestAppendOverKey(t *testing.T) {
	m := mapOf[[]byte](t, "strings")
	for n := range 1000 {
		m.Set(keyOf(n), fmt.Append(nil, "value ", n, " is longer than its key"))
	}
	looks := 0
	live.PutBetween(m.Map, live.Between{Current: func() bool { looks++; return looks%2 == 0 }})
	buf := make([]byte, 0, 1<<20)
	for n := range 1000 {
		buf = append(buf[:0], keyOf(n).Text...)
		got, ok := m.AppendGet(buf[:0], order.Probe{Text: unsafe.String(&buf[0], len(buf))})
		if want := fmt.Sprint("value ", n, " is longer than its key"); !ok || string(got) != want {
			t.Fatalf("%q, %t, want %q", got, ok, want)
		}
	}
	ends := []int32{0}
	buf = buf[:0]
	for n := range 1000 {
		buf = append(buf, keyOf(n).Text...)
		ends = append(ends, int32(len(buf)))
	}
	offsets := make([]int64, 1001)
	got, hits := m.AppendPacked(buf[:0], buf, ends, offsets, nil)
	if hits != 1000 {
		t.Fatalf("%d keys found", hits)
	}
	for n := range 1000 {
		if v, want := got[offsets[n]:offsets[n+1]], fmt.Sprint("value ", n, " is longer than its key"); string(v) != want {
			t.Fatalf("%q, want %q", v, want)
		}
	}
}

// Values beside writers, snapshots, generations that end all the time, and slabs that are emptied are
// never torn, and never another key's.
func TestStoredBeside(t *testing.T) {
	defer epoch.SetPace(20 * time.Microsecond)()
	defer blob.SetFreeAnyway(64 << 10)()
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			b := beside{layout: layout, m: mapOf[[]byte](t, layout), seed: seed.Of(t), t: t}
			b.run()
		})
	}
}

type beside struct {
	t      *testing.T
	layout string
	m      typed[[]byte]
	seed   uint64
	stop   atomic.Bool
}

const besideKeys = 600

func (b *beside) run() {
	var wg sync.WaitGroup
	for i, do := range []func(*rand.Rand){b.write, b.write, b.waves, b.read, b.read, b.snapshots} {
		rnd := rand.New(rand.NewPCG(b.seed, uint64(i)))
		wg.Go(func() {
			for !b.stop.Load() {
				do(rnd)
			}
		})
	}
	time.Sleep(seed.Lasting(300*time.Millisecond, 2*time.Second))
	b.stop.Store(true)
	wg.Wait()
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if err = live.CheckValues(b.m.Map); err == nil {
			return
		}
	}
	b.t.Error(err)
}

// must ends the test over a value that is not what it must be.
func (b *beside) must(key int, v []byte) {
	if err := broken(key, v); err != nil && !b.stop.Swap(true) {
		b.t.Error(err)
	}
}

func (b *beside) val(rnd *rand.Rand, key int) []byte {
	switch rnd.IntN(50) {
	case 0:
		return sealed(rnd, key, 33<<10+rnd.IntN(100))
	case 1, 2, 3:
		return sealed(rnd, key, 1000+rnd.IntN(2000))
	}
	return sealed(rnd, key, 16+rnd.IntN(100))
}

func (b *beside) write(rnd *rand.Rand) {
	n := rnd.IntN(besideKeys)
	switch k := keyOf(n); rnd.IntN(6) {
	case 0:
		b.m.Set(k, b.val(rnd, n))
	case 1:
		if old, had, _ := b.m.Swap(k, b.val(rnd, n)); had {
			b.must(n, old)
		}
	case 2:
		if old, had, _ := b.m.Delete(k); had {
			b.must(n, index.ValueAs[[]byte](old))
		}
	case 3:
		b.m.Update(k, func(old []byte, had bool) ([]byte, bool) {
			if had {
				b.must(n, old)
				clear(old) // it is ours
			}
			return b.val(rnd, n), true
		})
	case 4:
		ns := []int{n, (n + 7) % besideKeys, n, (n + 9) % besideKeys}
		kinds := []op.Kind{op.Set, op.Get, op.Delete, op.Set}
		vals, found := [][]byte{b.val(rnd, ns[0]), nil, nil, b.val(rnd, ns[3])}, make([]bool, 4)
		b.m.Apply(keysOf(b.layout, ns...), kinds, op.Get, index.ColumnOf(vals), found, true)
		for i, v := range vals {
			if found[i] {
				b.must(ns[i], v)
			}
		}
	case 5:
		ns, vals := []int{}, [][]byte{}
		for i := range 40 {
			ns = append(ns, (n+3*i)%besideKeys)
			vals = append(vals, b.val(rnd, ns[i]))
		}
		b.m.SetBatch(keysOf(b.layout, ns...), vals)
	}
}

// waves fills slabs with values of one size, and takes most of them out: they are emptied.
func (b *beside) waves(rnd *rand.Rand) {
	const many = 3000
	var ns []int
	for i := range many {
		ns = append(ns, 1000+i)
	}
	vals := make([][]byte, many)
	for i, n := range ns {
		vals[i] = sealed(rnd, n, 200)
	}
	b.m.SetBatch(keysOf(b.layout, ns...), vals)
	b.m.DeleteRange(keyOf(1000), keyOf(1000+many*9/10))
	time.Sleep(time.Duration(rnd.IntN(30)) * time.Millisecond)
}

func (b *beside) read(rnd *rand.Rand) {
	n := rnd.IntN(besideKeys)
	switch rnd.IntN(5) {
	case 0, 1:
		if v, ok := b.m.Get(keyOf(n)); ok {
			b.must(n, v)
		}
	case 2:
		var ns []int
		for range 200 {
			ns = append(ns, rnd.IntN(besideKeys))
		}
		vals, found := make([][]byte, len(ns)), make([]bool, len(ns))
		b.m.GetBatch(keysOf(b.layout, ns...), index.ColumnOf(vals), found)
		for i, v := range vals {
			if found[i] {
				b.must(ns[i], v)
			} else if v != nil {
				b.t.Errorf("there is no key %d, and its value is %x", ns[i], v)
			}
		}
	case 3:
		c := b.m.Cursor()
		defer c.Done()
		if !c.Move(index.Edge{Key: keyOf(n)}, n%2 == 0) {
			return
		}
		for range 20 {
			k, v, ok := c.Next()
			if !ok {
				return
			}
			b.must(numberOf(k), index.ValueAs[[]byte](v))
		}
	case 4:
		b.walk(n)
	}
}

func (b *beside) walk(n int) {
	for w := b.m.Walk(immortal{}, index.Edge{Key: keyOf(n)}, index.NoEdge, n%2 == 0, 300); w.Next(); {
		keys := order.KeysAt(index.KeyTypeOf[uint64]().Type, w.Keys, w.N)
		if b.layout == "strings" {
			keys = order.KeysAt(index.KeyTypeOf[string]().Type, w.Keys, w.N)
		}
		vals := index.SliceOf[[]byte](index.ColumnAt(w.Vals, w.N))
		for i, v := range vals {
			b.must(numberOf(keys.Probe(i)), v)
		}
		w.At = w.N // all were used
		if n%2 == 0 {
			w.At = -1
		}
	}
}

func (b *beside) snapshots(rnd *rand.Rand) {
	f, err := b.m.Freeze()
	if err != nil {
		b.t.Error(err)
		return
	}
	time.Sleep(time.Duration(rnd.IntN(3)) * time.Millisecond)
	ix, err := f.Open()
	if err != nil {
		b.t.Error(err)
		return
	}
	defer ix.Release()
	for range 2 {
		for n := range besideKeys {
			if v, ok := ix.Get(keyOf(n)); ok {
				b.must(n, index.ValueAs[[]byte](v))
			}
		}
		time.Sleep(time.Duration(rnd.IntN(5)) * time.Millisecond)
	}
}

// stalled makes the first goroutine that comes to a point wait there. It returns a channel that
// is closed when one has come, and a function that lets it go on.
func stalled(t *testing.T, point string) (there chan struct{}, release func()) {
	if !stall.On {
		t.Skip("needs the build tag stalls")
	}
	there, gone := make(chan struct{}), make(chan struct{})
	var caught atomic.Bool
	t.Cleanup(stall.Use(func(p string) {
		if p == point && !caught.Swap(true) {
			close(there)
			<-gone
		}
	}))
	return there, func() { close(gone) }
}

// storedReads are the ways to read the value of key 0, the first of the map, and where a
// goroutine is when it has the value's word, and not yet its bytes.
var storedReads = []struct {
	name, at string
	do       func(m typed[[]byte], layout string) []byte
}{
	{"Get", "live: word read", func(m typed[[]byte], _ string) []byte { v, _ := m.Get(keyOf(0)); return v }},
	{"At", "live: word read", func(m typed[[]byte], _ string) []byte {
		_, v, _ := m.At(0)
		return index.ValueAs[[]byte](v)
	}},
	{"Next", "live: word read", func(m typed[[]byte], _ string) []byte {
		c := m.Cursor()
		defer c.Done()
		c.Move(index.NoEdge, false)
		_, v, _ := c.Next()
		return index.ValueAs[[]byte](v)
	}},
	{"NextAppend", "live: word read", func(m typed[[]byte], _ string) []byte {
		c := m.Cursor()
		defer c.Done()
		c.Move(index.NoEdge, false)
		_, v, _ := c.NextAppend(nil)
		return v
	}},
	{"AppendGet", "live: word read", func(m typed[[]byte], _ string) []byte { v, _ := m.AppendGet(nil, keyOf(0)); return v }},
	{"AppendBatch", "live: words read", func(m typed[[]byte], layout string) []byte {
		v, _ := m.AppendBatch(nil, keysOf(layout, 0), make([]int64, 2), nil)
		return v
	}},
	{"GetBatch", "live: words read", func(m typed[[]byte], layout string) []byte {
		v := make([][]byte, 1)
		m.GetBatch(keysOf(layout, 0), index.ColumnOf(v), nil)
		return v[0]
	}},
}

// A reader that has the word of a value, and copies its bytes when the value was exchanged and some
// generations have ended, returns a value that its key has had. After one generation the memory
// has not been used again yet.
func TestStoredStalledReader(t *testing.T) {
	defer epoch.SetPace(time.Hour)() // only the test ends generations
	for _, layout := range layouts {
		for _, read := range storedReads {
			for _, generations := range []int{1, 2, 3} {
				t.Run(fmt.Sprint(layout, "/", read.name, "/", generations), func(t *testing.T) {
					rnd := seed.Rand(t)
					m := mapOf[[]byte](t, layout)
					first, second := sealed(rnd, 0, 100), sealed(rnd, 0, 100)
					m.Set(keyOf(0), first)
					there, release := stalled(t, read.at)
					done := make(chan []byte)
					go func() { done <- read.do(m, layout) }()
					<-there
					m.Set(keyOf(0), second)
					gens := live.GenerationsOf(m.Map)
					for range generations {
						gens.(interface{ Hasten() }).Hasten()
						gens.Reclaim()
					}
					for i := range 5000 { // whatever memory is free is another's
						m.Set(keyOf(1+i), sealed(rnd, 1+i, 100))
					}
					release()
					if v := <-done; !bytes.Equal(v, first) && !bytes.Equal(v, second) {
						t.Errorf("a late reader gets %x: %v", v, broken(0, v))
					}
				})
			}
		}
	}
}

// A value that is moved to another slab while its key gets another one does not come back.
func TestStoredStalledMove(t *testing.T) {
	defer blob.SetFreeAnyway(64 << 10)()
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			const n, left = 20_000, 37
			rnd := seed.Rand(t)
			m := mapOf[[]byte](t, layout)
			ns, vals := []int{}, [][]byte{}
			for i := range n {
				ns, vals = append(ns, i), append(vals, sealed(rnd, i, 100))
			}
			m.SetBatch(keysOf(layout, ns...), vals)
			there, release := stalled(t, "live: value moved")
			gone := slices.DeleteFunc(slices.Clone(ns), func(i int) bool { return i%left == 0 })
			m.DeleteBatch(keysOf(layout, gone...), nil)
			<-there
			want := map[int][]byte{}
			for i := 0; i < n; i += left {
				want[i] = sealed(rnd, i, 101)
				m.Set(keyOf(i), want[i])
			}
			release()
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				err := live.CheckValues(m.Map)
				for i, v := range want {
					if got, _ := m.Get(keyOf(i)); !bytes.Equal(got, v) {
						t.Fatalf("key %d has a value that it had before", i)
					}
				}
				if st := live.StoreOf(m.Map).Stats(); err == nil && st.Held < 2<<20 {
					return
				} else if time.Now().After(end) {
					t.Fatalf("%+v, %v", st, err)
				}
			}
		})
	}
}

// Memory over waves of filling, overwriting with other sizes and deleting is given back, though the
// tree is idle then.
func TestStoredWaves(t *testing.T) {
	const most = 2 << 20
	defer blob.SetFreeAnyway(most / 2)()
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			rnd := seed.Rand(t)
			m := mapOf[[]byte](t, layout)
			n := seed.Size(10_000, 100_000)
			for range seed.Times(3, 10) {
				for _, size := range []int{20 + rnd.IntN(50), 100 + rnd.IntN(300), 30} {
					ns, vals := []int{}, [][]byte{}
					for i := range n {
						ns, vals = append(ns, i), append(vals, sealed(rnd, i, size))
					}
					m.SetBatch(keysOf(layout, ns...), vals)
					settles(t, m, most)
				}
				gone := []int{}
				for i := range n {
					if rnd.IntN(20) > 0 {
						gone = append(gone, i)
					}
				}
				m.DeleteBatch(keysOf(layout, gone...), nil)
				settles(t, m, most)
			}
		})
	}
}

// settles waits until a map's values take no more than 1.3 times their bytes, and most.
func settles(t *testing.T, m typed[[]byte], most int64) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		st := live.StoreOf(m.Map).Stats()
		if st.Held <= st.Live*13/10+most {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v", st)
		}
	}
}

// A change that is refused for want of memory, whichever request fails, has changed nothing.
func TestStoredDenied(t *testing.T) {
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			for fail := 1; ; fail++ {
				if !denied(t, layout, fail) {
					return
				}
			}
		})
	}
}

// denied changes a map whose request number fail for memory of values is refused, and reports
// whether there was one.
func denied(t *testing.T, layout string, fail int) bool {
	rnd := rand.New(rand.NewPCG(uint64(fail), 0))
	m := mapOf[[]byte](t, layout)
	defer m.Close()
	want := map[int][]byte{}
	var requests atomic.Int64
	blob.DenyMemory(func() bool { return requests.Add(1) == int64(fail) })
	defer blob.DenyMemory(nil)
	sizes := []int{16, 100, 3000, 33_000}
	for round := range 2 {
		for i, size := range sizes {
			n := 10*round + i
			v := sealed(rnd, n, size)
			if m.Set(keyOf(n), v) == nil {
				want[n] = v
			}
			u := sealed(rnd, n, size+1000)
			if m.Update(keyOf(n), func([]byte, bool) ([]byte, bool) { return u, true }) == nil {
				want[n] = u
			}
		}
		ns, vals := []int{}, [][]byte{}
		for i := range 16 {
			ns, vals = append(ns, 100+i), append(vals, sealed(rnd, 100+i, sizes[i%len(sizes)]+rnd.IntN(100)))
		}
		if m.SetBatch(keysOf(layout, ns...), vals) == nil {
			for i, n := range ns {
				want[n] = vals[i]
			}
		}
	}
	if m.Len() != len(want) {
		t.Fatalf("request %d failed: %d entries, want %d", fail, m.Len(), len(want))
	}
	for n, v := range want {
		if got, ok := m.Get(keyOf(n)); !ok || !bytes.Equal(got, v) {
			t.Fatalf("request %d failed: key %d has %d bytes, %t", fail, n, len(got), ok)
		}
	}
	return requests.Load() >= int64(fail)
}

// A batch that fails when it is half done says so, and its values in the tree stay what they are.
func TestStoredHalf(t *testing.T) {
	for _, layout := range layouts {
		rnd, m := seed.Rand(t), mapOf[[]byte](t, layout)
		live.PutBetween(m.Map, live.Between{Half: true})
		ns, vals := []int{}, [][]byte{}
		for n := range 100 {
			ns, vals = append(ns, n), append(vals, sealed(rnd, n, 100))
		}
		if err := m.SetBatch(keysOf(layout, ns...), vals); index.CauseOf(err) != index.ErrMemoryLimit {
			t.Fatal(err)
		}
		for n := range 200 {
			m.Set(keyOf(1000+n), sealed(rnd, 1000+n, 100)) // where memory is free
		}
		for _, n := range ns {
			v, _ := m.Get(keyOf(n))
			if err := broken(n, v); err != nil {
				t.Fatalf("%s: %v", layout, err)
			}
		}
	}
}

// limited returns an empty map of a layout, with a limit.
func limited(t *testing.T, layout string, limit int64) typed[[]byte] {
	t.Helper()
	key, cfg := index.KeyTypeOf[uint64](), index.Config{Limit: limit}
	if layout == "strings" {
		key = index.KeyTypeOf[string]()
	} else if layout == "digits" {
		cfg.Layout = "radix"
	}
	m, err := newMap[[]byte](key, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A limit counts values: a change that is over it says so, and has changed nothing; whoever
// exchanges values within it is not refused, however fast.
func TestStoredLimit(t *testing.T) {
	const limit = 4 << 20
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			rnd := seed.Rand(t)
			m := limited(t, layout, limit)
			defer m.Close()
			n := 0
			for ; ; n++ {
				if err := m.Set(keyOf(n), sealed(rnd, n, 1000)); err != nil {
					if index.CauseOf(err) != index.ErrMemoryLimit {
						t.Fatal(err)
					}
					break
				}
			}
			if n < limit/1200 || n > limit/1000 || m.Len() != n {
				t.Errorf("%d values of 1000 bytes are within %d, there are %d", n, limit, m.Len())
			}
			// Nodes may have become free since: so these ask for much more.
			if err := m.SetBatch(keysOf(layout, n, n+1), [][]byte{sealed(rnd, n, 100_000), sealed(rnd, n+1, 100_000)}); index.CauseOf(err) != index.ErrMemoryLimit || m.Len() != n {
				t.Errorf("%v, %d entries", err, m.Len())
			}
			err := m.Update(keyOf(n), func([]byte, bool) ([]byte, bool) { return sealed(rnd, n, 100_000), true })
			if index.CauseOf(err) != index.ErrMemoryLimit || m.Len() != n {
				t.Errorf("%v, %d entries", err, m.Len())
			}
			m.DeleteRange(keyOf(0), keyOf(n/2))
			for i := range 20_000 {
				k := n/2 + 1 + i%100
				if err := m.Set(keyOf(k), sealed(rnd, k, 1000)); err != nil {
					t.Fatalf("exchange %d: %v", i, err)
				}
			}
			for k := n/2 + 1; k < n; k++ {
				v, _ := m.Get(keyOf(k))
				if err := broken(k, v); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Writers that exchange values at once are not refused, either, where there is room for one
// value more for each of them: none takes the room away from another again and again.
func TestStoredLimitBeside(t *testing.T) {
	const limit, writers, size = 2 << 20, 4, 20_000
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			s, rnd := seed.Of(t), seed.Rand(t)
			m := limited(t, layout, limit)
			defer m.Close()
			n := 0
			for m.Set(keyOf(n), sealed(rnd, n, size)) == nil {
				n++
			}
			m.DeleteRange(keyOf(0), keyOf(writers-1))
			var wg sync.WaitGroup
			for w := range writers {
				rnd := rand.New(rand.NewPCG(s, uint64(w)))
				wg.Go(func() {
					for i := range seed.Times(60, 2000) {
						k := writers + rnd.IntN(n-writers)
						if err := m.Set(keyOf(k), sealed(rnd, k, size)); err != nil {
							t.Errorf("exchange %d: %v", i, err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// A limit that does not count while a store is brought back counts what was loaded and set
// meanwhile, as soon as it does.
func TestStoredLoose(t *testing.T) {
	const limit = 1 << 20
	rnd := seed.Rand(t)
	for _, key := range []index.KeyType{index.KeyTypeOf[uint64](), index.KeyTypeOf[string]()} {
		m, err := newMap[[]byte](key, index.Config{Limit: limit, Loose: true})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		n := 0
		for ; n < 2*limit/1000; n++ {
			if err := m.Set(keyOf(n), sealed(rnd, n, 1000)); err != nil {
				t.Fatalf("the limit is not to count yet: %v", err)
			}
		}
		m.Inside(nil).Bind()
		if err := m.Set(keyOf(n), sealed(rnd, n, 1000)); index.CauseOf(err) != index.ErrMemoryLimit {
			t.Errorf("%d bytes and one value more: %v", n*1000, err)
		}
		m.DeleteRange(keyOf(0), keyOf(3*n/4))
		if err := m.Set(keyOf(n), sealed(rnd, n, 1000)); err != nil {
			t.Errorf("there is room: %v", err)
		}
	}
}
