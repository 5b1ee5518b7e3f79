package exec

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/flow"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/par"
)

// StringsGPU runs batches of strings on a GPU that holds a copy of the tree. Strings travel to it
// packed, a bucket at a time. If the GPU fails, for whatever reason, the CPU does its work.
type StringsGPU struct {
	*Strings
	attached[stringBucket]
	settle  layout.StringsOnDevice
	image   layout.StringImage
	held    int64
	strings bool // the device holds them, too
	jobs    par.Pool[stringSearch]
	forget  runtime.Cleanup
}

const stringSlots = flow.MaxLanes

// stringBucket is strings under way on a GPU.
type stringBucket struct {
	packing.Bucket
	params kernel.Params
}

// stringsOut returns the bytes that the results of n strings take in a slot.
func stringsOut(n int) int { return 4 * n }

// StringsNeed returns the device memory for a tree of strings: all of it, or
// without the strings themselves.
func StringsNeed(im *layout.StringImage, withStrings bool) (need int64) {
	for _, p := range im.Parts {
		need += int64(len(p))
	}
	if withStrings {
		need += int64(len(im.Strings))
	}
	return need + stringSlots*int64(packing.In(packing.MaxStrings)+stringsOut(packing.MaxStrings))
}

// NewStringsGPU copies the tree of cpu to a GPU, its strings too where there is
// room within free bytes and they are not to be left on the host. The device is
// the schedule's from then on, also if there is an error.
func NewStringsGPU(cpu *Strings, dev device.Device, free int64, leaveStrings bool) (*StringsGPU, error) {
	g := &StringsGPU{Strings: cpu, jobs: par.NewPool[stringSearch]()}
	g.attach(dev, stringSlots, func(device.Stream) {})
	if err := g.prepare(free, leaveStrings); err != nil {
		return nil, errors.Join(err, dev.Close())
	}
	g.forget = runtime.AddCleanup(g, func(d device.Device) { d.Close() }, dev)
	return g, nil
}

func (g *StringsGPU) prepare(free int64, leaveStrings bool) (err error) {
	can := false
	if g.settle, can = g.tree.(layout.StringsOnDevice); !can {
		return errors.New("exec: a layout of strings that a GPU cannot hold")
	}
	if g.image, err = g.settle.StringImage(); err != nil {
		return err
	}
	g.strings = !leaveStrings && StringsNeed(&g.image, true) <= free
	if need := StringsNeed(&g.image, g.strings); need > free {
		return fmt.Errorf("%w: needs %d bytes, %d are free", device.ErrOutOfMemory, need, free)
	}
	if g.set, err = kernel.LoadOnly(g.dev, g.image.Resident.Kernels()); err != nil {
		return err
	}
	if g.Serial, err = g.dev.NewStream(); err != nil {
		return err
	}
	return g.upload()
}

// upload copies the tree.
func (g *StringsGPU) upload() error {
	parts := make([]device.Ptr, len(g.image.Parts))
	for i, part := range g.image.Parts {
		if err := g.put(&parts[i], part); err != nil {
			return err
		}
	}
	var at device.Ptr
	if g.strings {
		if err := g.put(&at, g.image.Strings); err != nil {
			return err
		}
	}
	return g.image.Resident.Place(parts, at, packing.Longest)
}

// put copies a part.
func (g *StringsGPU) put(at *device.Ptr, part []byte) (err error) {
	if len(part) == 0 {
		return nil
	}
	if *at, err = g.dev.Alloc(len(part)); err != nil {
		return err
	}
	g.held += int64(len(part))
	return g.copyIn(*at, part)
}

// Held returns the bytes of the tree that the device has, and reports whether
// the strings themselves are among them.
func (g *StringsGPU) Held() (bytes int64, strings bool) { return g.held, g.strings }

// Rank sets ranks[i] to the number of strings below keys[i].
func (g *StringsGPU) Rank(keys StringBatch, ranks []int) {
	g.run(stringQueries{ask: rank, keys: keys, ranks: ranks})
}

// RankAfter sets ranks[i] to the number of strings up to keys[i].
func (g *StringsGPU) RankAfter(keys StringBatch, ranks []int) {
	g.run(stringQueries{ask: rankAfter, keys: keys, ranks: ranks})
}

// FindEach looks strings up and hands the results to sink.
func (g *StringsGPU) FindEach(keys StringBatch, sink Sink) (hits int) {
	return g.run(stringQueries{ask: findEach, keys: keys, sink: sink})
}

func (g *StringsGPU) run(what stringQueries) (hits int) {
	n := what.keys.Len()
	if n == 0 {
		return 0
	}
	if g.given() {
		return g.Strings.run(what)
	}
	j := par.Get(g.jobs)
	j.gpu = g
	j.begin(what)
	workers := min(max(n/packing.MinStrings, 1), g.workers)
	j.flow.Run(&g.Schedule, j, flow.Batch{
		Workers: workers, Overlap: flow.DoubleBuffered, Lanes: workers,
		In: j.pack.In(), Out: stringsOut(j.pack.Room),
	})
	hits = int(j.hits.Load())
	j.gpu, j.stringQueries, j.pack = nil, stringQueries{}, packing.Packer{} // neither the tree nor the caller's slices are a pool's to keep
	par.Put(g.jobs, j)
	return hits
}

// stringSearch is a batch of strings under way on CPU and GPU.
type stringSearch struct {
	stringQueries
	gpu  *StringsGPU
	flow flow.Flow[stringBucket]
	pack packing.Packer
	hits atomic.Int64
}

// begin makes a search ready for a batch. The rank behind a string is the rank
// of the string and a zero byte.
func (j *stringSearch) begin(what stringQueries) {
	j.stringQueries = what
	j.hits.Store(0)
	j.pack.Begin(what.keys, what.ask == rankAfter, packing.Gathered)
}

// Cut takes the next strings.
func (j *stringSearch) Cut(s *flow.Slot[stringBucket]) (pieces int, ok bool) {
	pieces, ok = j.pack.Cut(&s.Bucket.Bucket)
	s.Queries = s.Bucket.Hi - s.Bucket.Lo
	return pieces, ok
}

// Fill packs the strings of a bucket.
func (j *stringSearch) Fill(s *flow.Slot[stringBucket], _ int) {
	j.pack.Pack(&s.Bucket.Bucket, s.In)
}

// Send copies strings in, lets the GPU search, and copies results out.
func (j *stringSearch) Send(s *flow.Slot[stringBucket], st device.Stream) error {
	b := &s.Bucket
	if b.Packed == 0 {
		return nil
	}
	keys, err := j.pack.CopyIn(&b.Bucket, st, s.DevIn, s.In)
	if err != nil {
		return err
	}
	g := j.gpu
	if err := g.image.Resident.Search(g.set, st, &b.params, keys, s.DevIn, b.Packed, s.DevOut); err != nil {
		return err
	}
	return st.CopyOut(s.Out[:4*b.Packed], s.DevOut)
}

// settlePiece is the number of queries that a worker finishes at a time.
const settlePiece = 4 * stringPiece

// Ends returns the number of pieces that a bucket is finished in.
func (j *stringSearch) Ends(s *flow.Slot[stringBucket]) int {
	return (s.Queries + settlePiece - 1) / settlePiece
}

// Finish turns the GPU's results into ranks. Where they are not sure, the CPU
// goes on, and where there are none it begins.
func (j *stringSearch) Finish(s *flow.Slot[stringBucket], piece int) {
	b := &s.Bucket
	known := b.Packed
	if s.Err != nil {
		known = 0
	}
	end := min((piece+1)*settlePiece, s.Queries)
	for lo := piece * settlePiece; lo < end; {
		hi := min(lo+stringPiece, end)
		if lo < known {
			hi = min(hi, known)
			j.finish(s, lo, hi)
		} else {
			j.Answer(b.Lo+lo, b.Lo+hi)
		}
		lo = hi
	}
}

// finish settles queries [lo, hi) of a bucket, at most stringPiece of them.
func (j *stringSearch) finish(s *flow.Slot[stringBucket], lo, hi int) {
	b := &s.Bucket
	room := par.Get(j.gpu.spaces)
	ranks := room.ranks[:hi-lo]
	if j.ask != findEach {
		ranks = j.ranks[b.Lo+lo : b.Lo+hi]
	}
	j.settle(room, arena.As[uint32](s.Out)[lo:hi], b.Lo+lo, ranks)
	if j.ask == findEach {
		if f, ok := j.sink.(Fetcher); ok {
			f.Fetch(ranks)
		}
		j.hits.Add(int64(j.sink.Take(b.Lo+lo, ranks)))
	}
	j.gpu.give(room, hi-lo)
}

// settle sets the ranks of queries from first on from the GPU's results.
func (j *stringSearch) settle(room *stringSpace, known []uint32, first int, ranks []int) {
	left, sent, loose := room.left[:0], room.sent[:0], room.loose[:0]
	find := j.ask == findEach
	sure := find && !j.gpu.settle.Loose()
	for i, v := range known {
		at := int(v &^ (kernel.WordsEqual | kernel.WordsUnsure))
		key := j.keys.At(first + i)
		long := len(key) > packing.Longest
		switch {
		case v&kernel.WordsEqual != 0 && !long:
			ranks[i] = at
		case sure && v&kernel.WordsUnsure == 0 && !long:
			ranks[i] = -1
		default:
			if long { // the GPU looked for a cut key
				at = -1
			}
			left, sent, loose = append(left, i), append(sent, key), append(loose, at)
		}
	}
	if j.ask == rankAfter {
		sent = room.following(sent, sent)
	}
	j.confirm(sent, loose)
	for i, q := range left {
		ranks[q] = loose[i]
	}
}

// confirm has the CPU go on from where the GPU has come to. Searches that the
// GPU did not begin, at -1, are the CPU's from the start.
func (j *stringSearch) confirm(keys []string, ranks []int) {
	g, find := j.gpu, j.ask == findEach
	for len(keys) > 0 {
		n, begun := 0, ranks[0] >= 0
		for n < len(keys) && ranks[n] >= 0 == begun {
			n++
		}
		switch some, at := keys[:n], ranks[:n]; {
		case begun && find:
			g.settle.Confirm(some, at)
		case begun:
			g.settle.ConfirmRank(some, at)
		case find:
			g.tree.Find(some, at)
		default:
			g.tree.Rank(some, at)
		}
		keys, ranks = keys[n:], ranks[n:]
	}
}

// Done keeps nothing: a bucket has none of the caller's slices.
func (j *stringSearch) Done(*flow.Slot[stringBucket]) {}

// Rest lets the CPU answer all that was not cut yet.
func (j *stringSearch) Rest() {
	first, n := j.pack.Next, j.pack.Last-j.pack.Next
	par.Run(j.gpu.workers, (n+stringPiece-1)/stringPiece, par.Func(func(p int) {
		lo := first + p*stringPiece
		j.Answer(lo, min(lo+stringPiece, j.pack.Last))
	}))
	j.pack.Next = j.pack.Last
}

// Spare returns some of the last queries while there is more than a bucket
// left, where strings are compared on the CPU anyway. A GPU that does all of it
// waits for strings to be packed.
func (j *stringSearch) Spare() (lo, hi int, ok bool) {
	if j.gpu.strings || j.pack.Last-j.pack.Next < j.pack.Bucket+stringPiece {
		return 0, 0, false
	}
	hi = j.pack.Last
	j.pack.Last -= stringPiece
	return j.pack.Last, hi, true
}

// Answer answers queries on the CPU.
func (j *stringSearch) Answer(lo, hi int) {
	j.hits.Add(int64(j.gpu.Strings.answer(&j.stringQueries, lo, hi)))
}

// Crossover returns the least batch, a power of two, from which on the GPU
// answers faster than the CPU alone; 0 if there is none up to all of sample.
func (g *StringsGPU) Crossover(sample []string) (least int) {
	sink := new(dropped)
	for n := len(sample); n >= 1<<10; n /= 2 {
		part := StringBatch{Keys: sample[:n]}
		here := BestOf(func() { g.Strings.FindEach(part, sink) })
		there := BestOf(func() { g.FindEach(part, sink) })
		if there >= here || g.given() {
			break
		}
		least = n
	}
	return least
}

// dropped is a sink for measurements.
type dropped struct{}

func (*dropped) Take(int, []int) int { return 0 }

// Close frees the schedule's memory on the device. Batches under way go on on
// the CPU.
func (g *StringsGPU) Close() error {
	return g.close(func() { g.forget.Stop() })
}
