package stalls

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
)

var stopsExp = &contest.Experiment{
	Name:     "stops",
	About:    "how long the world waits for an operation of Frozen before it can be stopped",
	CaseName: "operation",
	Sizes:    []int{16 * contest.Mega},
	Extra:    []contest.ExtraColumn{{Name: colStop, Format: contest.Plain}, {Name: colStopWall, Format: contest.Plain}, {Name: colStops, Format: contest.Whole}},
	Run:      runStops,
}

// The extra columns of stops: the longest of a round, of all rounds the least,
// since the machine's other work adds milliseconds to some.
const (
	colStop     = "stop ms"
	colStopWall = "passed ms"
	colStops    = "stops"
)

// stopWorkers is the goroutines that an operation may use: more than one, so
// that state shared between workers is seen, and few enough that the goroutines
// that stop the world have threads of their own.
const stopWorkers = 2

func runStops(s *contest.Session) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(runtime.NumCPU(), stopWorkers+2)))
	dir, err := os.MkdirTemp("", "pando-stops-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, n := range s.Sizes {
		if err := stopsOfSize(s, n, filepath.Join(dir, "index")); err != nil {
			return err
		}
	}
	return nil
}

// plainGo is the system that the others are to be compared with.
const plainGo = "plain Go"

// row24 is a value that layouts do not keep.
type row24 [3]uint64

func stopsOfSize(s *contest.Session, n int, path string) error {
	s.Say("%s entries", contest.SizeText(n))
	if err := stopsOfGo(s, n); err != nil {
		return err
	}
	keys := data.SortedKeys[uint64](n, s.Seed)
	for _, l := range []pando.LayoutKind{pando.Pairs, pando.Apart, pando.Blocked, pando.Compressed} {
		if err := stopsOf(s, l.String(), path, keys, slices.Clone(keys), nil, pando.Layout(l)); err != nil {
			return err
		}
	}
	floats := make([]float64, n)
	for i := range floats {
		floats[i] = float64(i) - float64(n)/2
	}
	if err := stopsOf(s, "floats to none", path, floats, make([]struct{}, n), nil); err != nil {
		return err
	}
	floats = nil
	if err := stopsOf(s, "rows of 24 bytes", path, keys, make([]row24, n), nil); err != nil {
		return err
	}
	if err := stopsOf(s, "pointers", path, keys, pointers(n), pointerCodec()); err != nil {
		return err
	}
	keys = nil
	texts := data.UUIDs(n/4, s.Seed)
	for _, l := range []pando.LayoutKind{pando.AutoLayout, pando.Apart} {
		if err := stopsOf(s, "strings "+l.String(), path, texts, make([]uint64, len(texts)), nil, pando.Layout(l)); err != nil {
			return err
		}
	}
	return stopsOf(s, "strings to rows", path, texts, make([]row24, len(texts)), nil)
}

// stopsOfGo measures the base of comparison: loops that can be stopped
// anywhere. They show the delays of Go itself, and of the machine.
func stopsOfGo(s *contest.Session, n int) error {
	from := pointers(n)
	for _, op := range []stopOp{
		{"a loop", func() error { spin(n); return nil }},
		{"numbers made and set", func() error {
			for i, made := 0, make([]uint64, n); i < n; i++ {
				made[i] = uint64(i)
			}
			return nil
		}},
		{"pointers made and set", func() error {
			for i, made := 0, make([]*uint64, n); i < n; i++ {
				made[i] = from[i]
			}
			return nil
		}},
	} {
		if err := stop(s, plainGo, op.name, n, op.do); err != nil {
			return err
		}
	}
	return nil
}

// spin is work in Go that can be stopped anywhere.
func spin(n int) {
	x := uint64(n) | 1
	for range 20 * n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	runtime.KeepAlive(&x)
}

// pointers returns values that the garbage collector walks.
func pointers(n int) []*uint64 {
	numbers, out := make([]uint64, n), make([]*uint64, n)
	for i := range out {
		numbers[i], out[i] = uint64(i), &numbers[i]
	}
	return out
}

func pointerCodec() pando.Option {
	return pando.Values(
		func(dst []byte, v *uint64) []byte { return append(dst, byte(*v)) },
		func(b []byte) (*uint64, error) {
			if len(b) != 1 {
				return nil, errors.New("not a number")
			}
			v := uint64(b[0])
			return &v, nil
		})
}

// stop measures one operation: a round may run it several times, so that it is
// met by several stops.
func stop(s *contest.Session, system, operation string, n int, do func() error) error {
	long := time.Duration(s.Seconds * float64(time.Second) / 20)
	least := stopTime{math.MaxInt64, math.MaxInt64, 0}
	for range s.Rounds {
		runtime.GC()
		t, err := longestStop(func() error {
			for begun := time.Now(); ; {
				if err := do(); err != nil || time.Since(begun) > long {
					return err
				}
			}
		})
		if err != nil {
			return fmt.Errorf("%s, %s: %w", system, operation, err)
		}
		least = stopTime{min(least.wall, t.wall), min(least.busy, t.busy), least.stop + t.stop}
	}
	r := contest.NewRow(system, operation, n)
	r.Reference = system == plainGo
	r.Set(colStop, least.busy.Seconds()*1000)
	r.Set(colStopWall, least.wall.Seconds()*1000)
	r.Set(colStops, float64(least.stop))
	s.Add(r)
	s.Say("%s, %s: %.2f ms", system, operation, least.busy.Seconds()*1000)
	return nil
}

// stopsOf measures every operation of an index of sorted keys.
func stopsOf[K pando.Key, V any](s *contest.Session, name, path string, keys []K, vals []V, codec pando.Option, opts ...pando.Option) error {
	opts = append(opts, pando.On(pando.CPU), pando.Workers(stopWorkers))
	if codec != nil {
		opts = append(opts, codec)
	}
	mixed := slices.Clone(keys)
	rng := rand.New(rand.NewPCG(s.Seed, 2))
	rng.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
	freeze := func(keys []K) func() error {
		return func() error {
			ix, err := pando.Freeze(keys, vals, opts...)
			if err != nil {
				return err
			}
			return ix.Close()
		}
	}
	ix, err := pando.Freeze(keys, vals, opts...)
	if err != nil {
		return err
	}
	defer ix.Close()
	s.EndSet()
	o := &stopping[K, V]{ix: ix, keys: keys, mixed: mixed, path: path, codec: codec}
	builds := []stopOp{{"Freeze sorted", freeze(keys)}, {"Freeze unsorted", freeze(mixed)}, {"FreezeSeq", func() error {
		ix, err := pando.FreezeSeq(ix.All(), opts...)
		if err != nil {
			return err
		}
		return ix.Close()
	}}}
	for _, op := range append(builds, o.operations()...) {
		if err := stop(s, name, op.name, len(keys), op.do); err != nil {
			return err
		}
	}
	return nil
}

// stopOp is an operation that is to be stopped.
type stopOp struct {
	name string
	do   func() error
}

// stopping is an index whose operations are to be stopped.
type stopping[K pando.Key, V any] struct {
	ix          *pando.Frozen[K, V]
	keys, mixed []K
	path        string
	codec       pando.Option
}

func (o *stopping[K, V]) operations() []stopOp {
	n := len(o.keys)
	vals, found, ranks := make([]V, n), make([]bool, n), make([]int, n)
	lo, hi := o.keys[:n/2], o.keys[n/2:n/2*2]
	do := func(f func()) func() error { return func() error { f(); return nil } }
	return []stopOp{
		{"GetBatch", do(func() { o.ix.GetBatch(o.mixed, vals, found) })},
		{"RankBatch", do(func() { o.ix.RankBatch(o.mixed, ranks) })},
		{"CountBatch", do(func() { o.ix.CountBatch(lo, hi, ranks) })},
		{"RangeBatch, one range", do(func() { o.ix.RangeBatch(o.keys[:1], o.keys[n-1:], 0) })},
		{"RangeBatch, many", do(func() { o.ix.RangeBatch(o.mixed, o.mixed, 0) })},
		{"Range", do(func() {
			for range o.ix.Range(o.keys[0], o.keys[n-1]) {
			}
		})},
		{"Backward", do(func() {
			for range o.ix.Backward() {
			}
		})},
		{"At", do(func() {
			for i := range n {
				o.ix.At(i)
			}
		})},
		{"WriteTo", func() error { _, err := o.ix.WriteTo(io.Discard); return err }},
		{"Save", func() error { return o.ix.Save(o.path) }},
		{"Verify", func() error { return pando.Verify(o.path) }},
		{"Open, verified, Close", o.reopen},
	}
}

func (o *stopping[K, V]) reopen() error {
	opts := []pando.Option{pando.On(pando.CPU), pando.Workers(stopWorkers), pando.Verified()}
	if o.codec != nil {
		opts = append(opts, o.codec)
	}
	ix, err := pando.Open[K, V](o.path, opts...)
	if err != nil {
		return err
	}
	return ix.Close()
}
