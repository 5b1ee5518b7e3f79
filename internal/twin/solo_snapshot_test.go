package twin

import (
	"errors"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// soloRig is a tree on a GPU alone, and what it should have.
type soloRig struct {
	t    *testing.T
	s    *Solo[uint64]
	has  map[uint64]uint64
	rng  *rand.Rand
	errs []error // what went wrong; nil errors are not among them
}

func (r *soloRig) note(err error) bool {
	if err != nil {
		r.errs = append(r.errs, err)
	}
	return err == nil
}

// set sets n random keys.
func (r *soloRig) set(n int) error {
	keys, vals := make([]uint64, n), make([]uint64, n)
	for i := range keys {
		keys[i], vals[i] = r.rng.Uint64N(3000), r.rng.Uint64()
	}
	err := r.s.Apply(&Batch[uint64]{N: n, Kind: op.Set, Fill: func(lo int, ks, vs []uint64, _ []uint8) {
		copy(ks, keys[lo:])
		copy(vs, vals[lo:])
	}})
	if err == nil {
		for i, k := range keys {
			r.has[k] = vals[i]
		}
	}
	return err
}

// soloReader is a tree on a GPU alone, or a snapshot of one.
type soloReader interface {
	Len() int
	Find(n int, fill func(lo int, keys []uint64), answer func(lo int, vals []uint64, found []uint8)) error
	Rank(keys []uint64, after bool, ranks []int) error
}

// check compares what a reader answers, unless it returns an error.
func (r *soloRig) check(v soloReader, has map[uint64]uint64) error {
	r.t.Helper()
	all := slices.Sorted(maps.Keys(has))
	if v.Len() != len(all) {
		r.t.Errorf("Len %d, want %d", v.Len(), len(all))
	}
	keys := make([]uint64, 100)
	for i := range keys {
		keys[i] = r.rng.Uint64N(3000)
	}
	err := v.Find(len(keys), func(lo int, ks []uint64) { copy(ks, keys[lo:]) }, func(lo int, vals []uint64, found []uint8) {
		for i, got := range vals {
			there := found[i/8]>>(i%8)&1 != 0
			if want, ok := has[keys[lo+i]]; got != want || there != ok {
				r.t.Errorf("key %d is %d, %t, want %d, %t", keys[lo+i], got, there, want, ok)
			}
		}
	})
	if err != nil {
		return err
	}
	ranks := make([]int, len(keys))
	if err := v.Rank(keys, false, ranks); err != nil {
		return err
	}
	for i, k := range keys {
		if want, _ := slices.BinarySearch(all, k); ranks[i] != want {
			r.t.Errorf("key %d has rank %d, want %d", k, ranks[i], want)
		}
	}
	return r.checkRuns(v, all, has)
}

// checkRuns compares all entries, in order.
func (r *soloRig) checkRuns(v soloReader, all []uint64, has map[uint64]uint64) (err error) {
	r.t.Helper()
	ks, vs := make([]uint64, len(all)), make([]uint64, len(all))
	switch v := v.(type) {
	case *Solo[uint64]:
		_, err = v.Entries(0, ks, vs)
	case *SoloSnapshot[uint64]:
		err = v.Runs([]int{0}, []int{0, len(all)}, ks, vs)
	}
	if err != nil {
		return err
	}
	for i, k := range all {
		if ks[i] != k || vs[i] != has[k] {
			r.t.Errorf("entry %d is %d → %d, want %d → %d", i, ks[i], vs[i], k, has[k])
		}
	}
	return nil
}

// taken is a snapshot and what it should have.
type taken struct {
	v   *SoloSnapshot[uint64]
	has map[uint64]uint64
}

func (r *soloRig) snapshot() (taken, error) {
	v, err := r.s.Snapshot()
	return taken{v, maps.Clone(r.has)}, err
}

// lifeWithSnapshots does a bit of everything with snapshots of several versions,
// and notes errors.
func (r *soloRig) lifeWithSnapshots() {
	r.t.Helper()
	var all []taken
	for range 3 {
		r.note(r.set(1 + r.rng.IntN(60)))
		if s, err := r.snapshot(); r.note(err) {
			all = append(all, s)
		}
		for _, s := range all {
			r.note(r.check(s.v, s.has))
		}
		if len(all) == 2 {
			i := r.rng.IntN(2)
			r.note(all[i].v.Release())
			all = slices.Delete(all, i, i+1)
		}
		r.note(r.check(r.s, r.has))
	}
	r.note(r.s.Close())
	for _, s := range all {
		r.note(r.check(s.v, s.has))
		r.note(s.v.Release())
		if err := s.v.Release(); err != nil { // a second Release does nothing
			r.t.Error(err)
		}
		if err := r.check(s.v, s.has); !errors.Is(err, op.ErrClosed) {
			r.t.Errorf("after Release: %v", err)
		}
	}
}

// Whatever operation of the device fails, or is the last before it is lost, while
// snapshots are held: what answers is right, everything else returns an error,
// Close and Release work, and nothing is left. PANDO_LONG=1000 lets each fail in
// turn.
func TestSoloSnapshotsSurviveOrSaySo(t *testing.T) {
	first := seed.Of(t)
	work := func(p faulty.Plan) (*faulty.Device, []error) {
		dev := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), p)
		s, err := NewSolo[uint64](dev, Options{})
		if err != nil {
			return dev, []error{err}
		}
		r := &soloRig{t: t, s: s, has: map[uint64]uint64{}, rng: rand.New(rand.NewPCG(first, 7))}
		r.lifeWithSnapshots()
		return dev, r.errs
	}
	count, errs := work(faulty.Plan{})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	all := count.Count(faulty.Any)
	step := seed.Stride(all, 8, 16)
	for at := 1 + int(first%uint64(step)); at <= all; at += step {
		for _, lose := range []bool{false, true} {
			if !seed.Long() && lose == (at%2 == 0) {
				continue // one of them
			}
			dev, errs := work(faulty.Plan{At: at, Times: 2, Lose: lose})
			if len(errs) == 0 {
				t.Errorf("operation %d failed (lost %t), and nobody was told", at, lose)
			}
			for _, err := range errs {
				if lose && !errors.Is(err, device.ErrLost) {
					t.Errorf("the device is lost at operation %d: %v", at, err)
				}
			}
			if live := dev.Live(); live != 0 {
				t.Errorf("operation %d failed (lost %t): %d things of the device are left", at, lose, live)
			}
		}
	}
}

// crowded is a device whose memory others take all of, for a time: but for what
// is given back.
type crowded struct {
	device.Device
	full  bool
	sizes map[device.Ptr]int
	left  int
}

func (d *crowded) Alloc(bytes int) (device.Ptr, error) {
	if d.full && bytes > d.left {
		return 0, device.ErrOutOfMemory
	}
	at, err := d.Device.Alloc(bytes)
	if err == nil {
		d.sizes[at] = bytes
		d.left -= bytes
	}
	return at, err
}

func (d *crowded) Free(at device.Ptr) error {
	d.left += d.sizes[at]
	return d.Device.Free(at)
}

func (d *crowded) fill() { d.full, d.left = true, 0 }

func (d *crowded) HostAlloc(bytes int) ([]byte, error) {
	if d.full {
		return nil, device.ErrOutOfMemory
	}
	return d.Device.HostAlloc(bytes)
}

func (d *crowded) Reserve(bytes int64) (device.Range, error) {
	r, err := d.Device.Reserve(bytes)
	return crowdedRange{r, d}, err
}

type crowdedRange struct {
	device.Range
	d *crowded
}

func (r crowdedRange) Grow(bytes int64) error {
	if r.d.full {
		return device.ErrOutOfMemory
	}
	return r.Range.Grow(bytes)
}

// With no memory left, a batch is refused and a tree and its snapshots answer,
// also if nobody has asked them before; with memory again, the batch succeeds.
func TestSoloFullWithSnapshots(t *testing.T) {
	first := seed.Of(t)
	for _, entries := range []int{0, 40} {
		dev := &crowded{Device: ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), sizes: map[device.Ptr]int{}}
		s, err := NewSolo[uint64](dev, Options{})
		must(t, err)
		r := &soloRig{t: t, s: s, has: map[uint64]uint64{}, rng: rand.New(rand.NewPCG(first, 8))}
		must(t, r.set(entries))
		old, err := r.snapshot()
		must(t, err)
		dev.fill()
		for _, n := range []int{500, 300_000} { // the second needs larger buffers, too
			if err := r.set(n); !errors.Is(err, device.ErrOutOfMemory) && !errors.Is(err, op.ErrLimit) {
				t.Fatalf("without memory, %d keys: %v", n, err)
			}
			must(t, r.check(s, r.has))
			must(t, r.check(old.v, old.has))
		}
		must(t, old.v.Release())
		dev.full = false
		must(t, r.set(500))
		must(t, r.check(s, r.has))
		must(t, s.Check())
		must(t, s.Close())
	}
}

// Snapshots of many versions are released in any order, and each answers as long
// as it is held; without any, nothing is kept.
func TestSoloSnapshotsInAnyOrder(t *testing.T) {
	first := seed.Of(t)
	s, err := NewSolo[uint64](ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), Options{})
	must(t, err)
	r := &soloRig{t: t, s: s, has: map[uint64]uint64{}, rng: rand.New(rand.NewPCG(first, 9))}
	var all []taken
	for range 4 {
		must(t, r.set(r.rng.IntN(80)))
		for range r.rng.IntN(3) { // some versions have none, some two
			v, err := r.snapshot()
			must(t, err)
			all = append(all, v)
		}
	}
	r.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range all {
		must(t, r.check(all[i].v, all[i].has))
		last := all[len(all)-1]
		must(t, r.check(last.v, last.has))
		must(t, all[i].v.Release())
		must(t, r.set(20))
		must(t, s.Check())
	}
	if kept := s.Kept(); kept != 0 {
		t.Errorf("%d bytes are kept for nobody", kept)
	}
	must(t, r.check(s, r.has))
	must(t, s.Close())
}

// eventually reports whether something becomes true, when the garbage collector
// has had some time.
func eventually(is func() bool) bool {
	for range 4000 {
		if is() {
			return true
		}
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// A tree that was closed gives its device back when the last of its snapshots is
// forgotten, also if the tree itself is not.
func TestSoloClosedBeforeForgotten(t *testing.T) {
	first := seed.Of(t)
	dev := faulty.New(ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), faulty.Plan{})
	s, err := NewSolo[uint64](dev, Options{})
	must(t, err)
	r := &soloRig{t: t, s: s, has: map[uint64]uint64{}, rng: rand.New(rand.NewPCG(first, 10))}
	for range 2 {
		must(t, r.set(20))
		_, err = s.Snapshot()
		must(t, err)
	}
	must(t, s.Close())
	if !eventually(func() bool { return dev.Live() == 0 }) {
		t.Errorf("%d things of the device are left", dev.Live())
	}
	runtime.KeepAlive(s)
}

// A forgotten snapshot is released without anybody using the tree.
func TestSoloForgotten(t *testing.T) {
	first := seed.Of(t)
	s, err := NewSolo[uint64](ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), Options{})
	must(t, err)
	r := &soloRig{t: t, s: s, has: map[uint64]uint64{}, rng: rand.New(rand.NewPCG(first, 11))}
	must(t, r.set(50))
	_, err = s.Snapshot()
	must(t, err)
	must(t, r.set(50))
	if !eventually(func() bool { return s.Kept() == 0 }) {
		t.Errorf("%d bytes are kept for nobody", s.Kept())
	}
	must(t, r.check(s, r.has))
	must(t, s.Close())
}

// What forgotten snapshots keep is given back before a batch is refused for want
// of memory.
func TestSoloFullOfForgotten(t *testing.T) {
	first := seed.Of(t)
	s, err := NewSolo[uint64](ptx.New(ptx.Seed(first), ptx.RaceCheck(seed.Long())), Options{Room: 88 << 10})
	must(t, err)
	r := &soloRig{t: t, s: s, has: map[uint64]uint64{}, rng: rand.New(rand.NewPCG(first, 12))}
	must(t, r.set(200))
	for range 8 { // each keeps more than an eighth of all room
		_, err := s.Snapshot()
		must(t, err)
		must(t, r.set(200))
	}
	must(t, r.check(s, r.has))
	must(t, s.Close())
}
