package cuart

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/inside"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/internal/cuart"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/radix"
)

var gpuRadix = &contest.Experiment{
	Name:     "gpu-radix",
	About:    "the GPU's radix tree of strings: lookups and upserts, in the GPU's memory and from page-locked host memory and back",
	Per:      "one key; lookups in the GPU's memory are timed by events, all else by the host's clock",
	CaseName: "keys, work",
	Sizes:    []int{16 * contest.Mega},
	Queries:  16 * contest.Mega,
	Extra:    contest.GigaColumns,
	Run:      runGPURadix,
}

// Names of its rows.
const (
	nameRadixGPU = "Pando GPU radix"
	rowThread    = nameRadixGPU + ", a thread a key"
	rowTile      = nameRadixGPU + ", a tile of 4 a key"
	rowWidth     = nameRadixGPU + ", a thread a key, no offsets"
	rowDirect    = nameRadixGPU + ", the paper's table, a thread a key"
	rowHost      = nameRadixGPU + ", host to host"
	rowHostTile  = nameRadixGPU + ", host to host, tile"
	rowResident  = nameRadixGPU + ", in the GPU's memory"
)

// radixKinds are the keys.
var radixKinds = []data.TextKind{data.TreeTextKinds[3], data.TreeTextKinds[4], data.TreeTextKinds[0]}

// radixBatches are the operations of a batch of upserts.
var radixBatches = []int{64 * contest.Kilo, contest.Mega, 4 * contest.Mega, 16 * contest.Mega}

func runGPURadix(s *contest.Session) error {
	err := rig.With(s, 0, func(g *rig.Rig) error {
		for _, n := range s.Sizes {
			for _, kind := range radixKinds {
				debug.FreeOSMemory() // frees the memory of the previous ones
				perEntry := kind.Bytes + data.StringHeader + data.TextValue
				if !s.Room(kind.Label, n, 2*perEntry+float64(s.Queries)/float64(n)*(perEntry+32), "use a smaller --n") {
					continue
				}
				if err := g.ClearTree(n, radixContests(g, kind, n)); err != nil {
					return err
				}
			}
		}
		return nil
	})
	s.SetGigas()
	return err
}

// radixRig is a tree of strings on the GPU, and strings that it has or is to get.
type radixRig struct {
	g     *rig.Rig
	label string
	keys  []string // all, of which every step-th is not in the tree at first
	step  int
	mean  float64
	tree  *cuart.Tree
	port  *cuart.Port
	took  time.Duration
	one   bool // all operations of a batch are on one key
	batch radixBatch
}

// radixBatch is strings in page-locked memory and in the GPU's, and the expected
// results.
type radixBatch struct {
	at          []uint32 // which of all
	host        packing.Strings
	vals        []uint64 // page-locked: values set, or found
	found       []bool
	on          kernel.StringKeys
	onVals, out rig.Ptr
	bits        rig.Ptr
	fresh       kernel.StringKeys // those that were not in the tree
	locked      [][]byte
}

func radixContests(g *rig.Rig, kind data.TextKind, n int) (err error) {
	s := g.S
	s.Say("making %s %s ...", contest.SizeText(n), kind.Label)
	const step = 8 // of eight keys one comes with the batches
	r := &radixRig{g: g, label: kind.Label, keys: kind.Keys(n+n/(step-1), s.Seed), step: step}
	if r.tree, err = r.open(cuart.Options{}); err != nil {
		return err
	}
	r.port = cuart.NewPort(r.tree, contest.AllCores())
	defer func() { err = errors.Join(err, r.port.Close(), r.tree.Close()) }()
	if err := r.lookups(n); err != nil {
		return err
	}
	most := len(r.keys) / step * 2 // half of them new
	for _, size := range s.UpTo(radixBatches) {
		if err := r.upserts(n, min(size, most)); err != nil {
			return err
		}
		if size >= most {
			break
		}
	}
	r.one = true
	return r.upserts(n, min(contest.Mega, s.Queries, most))
}

// open loads a tree with all keys but every step-th.
func (r *radixRig) open(opts cuart.Options) (*cuart.Tree, error) {
	skip, last := 0, r.keys[len(r.keys)-1]
	for skip < len(last) && skip < len(r.keys[0]) && r.keys[0][skip] == last[skip] {
		skip++
	}
	opts.Entries, opts.Skip, opts.Seed = len(r.keys), skip, r.g.S.Seed|1
	t, err := cuart.New(r.g.Dev, opts)
	if err != nil {
		return nil, err
	}
	port := cuart.NewPort(t, contest.AllCores())
	defer port.Close()
	var keys []string
	var vals []uint64
	total := 0
	for i, k := range r.keys {
		total += len(k)
		if i%r.step != 0 {
			keys, vals = append(keys, k), append(vals, data.ValueOf(uint64(i)))
		}
		if len(keys) == 4*contest.Mega || i == len(r.keys)-1 && len(keys) > 0 {
			if err := port.Apply(&cuart.Changes{Keys: packing.Strings{Keys: keys}, Vals: inside.Bytes(vals), Kind: op.Set}); err != nil {
				return nil, errors.Join(err, t.Close())
			}
			keys, vals = keys[:0], vals[:0]
		}
	}
	r.mean = float64(total) / float64(len(r.keys))
	return t, nil
}

// lock returns page-locked memory that a GPU may read.
func (r *radixRig) lock(bytes int) ([]byte, error) {
	b, err := r.g.Dev.HostAlloc(max(bytes, 8))
	if err == nil {
		device.Share(b)
		r.batch.locked = append(r.batch.locked, b)
	}
	return b, err
}

// unlock frees what a batch has.
func (r *radixRig) unlock() (err error) {
	for _, b := range r.batch.locked {
		device.Unshare(b)
		err = errors.Join(err, r.g.Dev.HostFree(b))
	}
	r.batch = radixBatch{}
	return err
}

// draw makes a batch of n strings: random ones that are there, or half of them new.
func (r *radixRig) draw(n int, half bool) error {
	b, rng := &r.batch, data.NewRand(r.g.S.Seed, data.StreamTexts-7)
	b.at, b.found = make([]uint32, n), make([]bool, n)
	bytes := 0
	for i := range b.at {
		at := rng.IntN(len(r.keys))
		switch is := at%r.step == 0; {
		case r.one:
			at = 1
		case half && i%2 == 0: // each but once
			at = i / 2 * r.step % len(r.keys)
		case is:
			at = min(at+1, len(r.keys)-1)
			if at%r.step == 0 {
				at--
			}
		}
		b.at[i] = uint32(at)
		bytes += len(r.keys[at])
	}
	if bytes > math.MaxInt32 {
		return fmt.Errorf("%d bytes of keys do not fit into one batch: use fewer --queries", bytes)
	}
	text, err := r.lock(bytes + 8)
	if err != nil {
		return err
	}
	offsets, err := r.lock(4 * (n + 1))
	if err != nil {
		return err
	}
	vals, err := r.lock(8 * n)
	if err != nil {
		return err
	}
	b.host, b.vals = packing.Strings{Data: text, Offsets: inside.As[int32](offsets)[:n+1]}, inside.As[uint64](vals)[:n]
	at := 0
	for i, k := range b.at {
		b.host.Offsets[i] = int32(at)
		at += copy(text[at:], r.keys[k])
		b.vals[i] = data.ValueOf(uint64(k)) + 1
	}
	b.host.Offsets[n] = int32(at)
	return r.upload(n, half)
}

// upload copies a batch to the GPU.
func (r *radixRig) upload(n int, half bool) error {
	b, p := &r.batch, rig.Placing{G: r.g}
	b.on = kernel.StringKeys{Bytes: rig.Place(&p, b.host.Data), Offsets: rig.Place(&p, b.host.Offsets), N: uint32(n)}
	b.onVals, b.out, b.bits = rig.Place(&p, b.vals), p.Room(8*n), p.Room(rig.BitBytes(n))
	if half { // the new ones alone, to be taken out again
		var text []byte
		offsets := []uint32{0}
		for _, at := range b.at {
			if int(at)%r.step == 0 {
				text = append(text, r.keys[at]...)
				offsets = append(offsets, uint32(len(text)))
			}
		}
		b.fresh = kernel.StringKeys{Bytes: rig.Place(&p, append(text, make([]byte, 8)...)), Offsets: rig.Place(&p, offsets), N: uint32(len(offsets) - 1)}
	}
	r.g.Memory = append(r.g.Memory, p.Memory...)
	return p.Err
}

// finish frees a batch.
func (r *radixRig) finish(n int, err error) error {
	return errors.Join(r.g.ClearTree(n, err), r.unlock())
}

func (r *radixRig) bytes(t *cuart.Tree) float64 { return float64(t.Bytes()) / float64(max(1, t.Len())) }

// lookups measures searches.
func (r *radixRig) lookups(n int) (err error) {
	defer func() { err = r.finish(n, err) }()
	s := r.g.S
	if err := r.draw(s.Queries, false); err != nil {
		return err
	}
	c := &contest.Contest{N: n, Threads: contest.AllCores(), Label: r.label + ", lookups", Ops: s.Queries}
	c.Subjects = []*contest.Subject{
		r.resident(rowThread, r.tree, r.batch.on, false), r.resident(rowTile, r.tree, r.batch.on, true),
		r.hostToHost(rowHost, r.port, false, 0, nil), r.hostToHost(rowHostTile, r.port, true, 0, nil),
	}
	c.Subjects[0].Reference = true
	if width := int(r.mean); float64(width) == r.mean {
		keys := r.batch.on
		keys.Offsets, keys.Width = 0, uint32(width)
		c.Subjects = append(c.Subjects, r.resident(rowWidth, r.tree, keys, false))
	}
	direct, err := r.open(cuart.Options{Direct: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, direct.Close()) }()
	c.Subjects = append(c.Subjects, r.resident(rowDirect, direct, r.batch.on, false))
	return s.Compete(c)
}

// resident looks keys up that are in the GPU's memory.
func (r *radixRig) resident(name string, t *cuart.Tree, keys kernel.StringKeys, tile bool) *contest.Subject {
	g, b := r.g, &r.batch
	work := func(ops int) error {
		some := keys
		some.N = uint32(ops)
		return t.Find(g.Stream, some, tile, b.out, b.bits)
	}
	wipe := func(ops int) error {
		return errors.Join(g.Stream.Fill(b.out, math.MaxUint32, 8*ops), g.Stream.Fill(b.bits, 0x55555555, rig.BitBytes(ops)))
	}
	return g.Subject(name, r.bytes(t), work, wipe, func(ops int) error { return r.found(ops, 0) })
}

// found checks the GPU's results: each value must be its first one plus more.
func (r *radixRig) found(ops int, more uint64) error {
	b := &r.batch
	err := rig.ReadBack(r.g, b.out, ops, func(first int, part []uint64) error {
		for i, v := range part {
			if want := data.ValueOf(uint64(b.at[first+i])) + more; v != want {
				return fmt.Errorf("wrong answer for key %q: value %d; it should be %d", r.keys[b.at[first+i]], v, want)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return rig.ReadBack(r.g, b.bits, rig.BitBytes(ops)/4, func(first int, part []uint32) error { return rig.AllSet(first, part, ops) })
}

// hostToHost looks keys up that are in page-locked host memory, in buckets of some
// strings where that is not 0. cpu, if there is one, has the keys that the tree leaves
// out.
func (r *radixRig) hostToHost(name string, port *cuart.Port, tile bool, bucket int, cpu *radix.Tree) *contest.Subject {
	b := &r.batch
	var left atomic.Int64
	return &contest.Subject{
		System: name,
		Do: func(ops int) error {
			port.Tile, port.Bucket = tile, bucket
			left.Store(0)
			keys := packing.Strings{Data: b.host.Data, Offsets: b.host.Offsets[:ops+1]}
			port.Find(cuart.Queries{Keys: keys, Into: inside.Bytes(b.vals),
				Take: func(lo int, vals, bits []byte) { exec.SpreadBits(b.found[lo:lo+len(vals)/8], bits) },
				CPU: func(lo, hi int) {
					if cpu == nil {
						left.Add(int64(hi - lo))
						return
					}
					for i := lo; i < hi; i++ {
						b.vals[i], b.found[i] = cpu.Get(keys.At(i))
					}
				}})
			return port.Down()
		},
		Check: func(ops int) error {
			if n := left.Load(); n > 0 {
				return fmt.Errorf("%d of %d keys were left to the CPU", n, ops)
			}
			for i, at := range b.at[:ops] {
				if want := data.ValueOf(uint64(at)); !b.found[i] || b.vals[i] != want {
					return fmt.Errorf("wrong answer for key %q: value %d, found %t; it should be %d", r.keys[at], b.vals[i], b.found[i], want)
				}
				b.vals[i], b.found[i] = 0, false
			}
			return nil
		},
	}
}

// upserts measures batches of size, half of them new keys.
func (r *radixRig) upserts(n, size int) (err error) {
	defer func() { err = r.finish(n, err) }()
	if err := r.draw(size, true); err != nil {
		return err
	}
	b := &r.batch
	c := &contest.Contest{N: n, Threads: contest.AllCores(), Label: fmt.Sprintf("%s, upserts, %s", r.label, contest.SizeText(size)), Ops: size}
	if r.one {
		c.Label += ", one key"
	}
	resident := func() error {
		return r.tree.Apply(&cuart.Ops{Keys: b.on, Vals: b.onVals, Kind: op.Set})
	}
	host := func() error {
		return r.port.Apply(&cuart.Changes{Keys: b.host, Vals: inside.Bytes(b.vals), Kind: op.Set})
	}
	c.Subjects = []*contest.Subject{r.upsert(rowResident, resident), r.upsert(rowHost, host)}
	c.Subjects[0].Reference = true
	return r.g.S.Compete(c)
}

// upsert is a batch done in one way. Before it new keys are taken out.
func (r *radixRig) upsert(name string, apply func() error) *contest.Subject {
	b, st := &r.batch, r.tree.Stream()
	undo := func() error {
		return errors.Join(r.tree.Apply(&cuart.Ops{Keys: b.fresh, Kind: op.Delete}), st.Synchronize())
	}
	return &contest.Subject{
		System: name, Bytes: r.bytes(r.tree), OnGPU: true, Whole: true,
		Clock: func() time.Duration { return r.took },
		Do: func(int) error {
			for start := time.Now(); ; { // warm
				if err := errors.Join(apply(), undo()); err != nil {
					return err
				}
				if time.Since(start) >= r.g.S.WarmUp {
					break
				}
			}
			start := time.Now()
			err := errors.Join(apply(), st.Synchronize())
			r.took = time.Since(start)
			return err
		},
		Check: func(ops int) error {
			g := r.g
			err := errors.Join(g.Stream.Fill(b.bits, 0x55555555, rig.BitBytes(ops)), r.tree.Find(g.Stream, b.on, false, b.out, b.bits), g.Stream.Synchronize())
			return errors.Join(err, r.found(ops, 1), undo())
		},
	}
}
