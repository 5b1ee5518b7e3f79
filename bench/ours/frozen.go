// Package ours is Pando behind the interfaces of package peers, by its public
// API alone, and the names of its rows.
package ours

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/peers"
	_ "github.com/pando-index/pando/cuda" // the library finds its GPUs by it
)

// Frozen is a Pando index that can be rebuilt for another number of threads:
// the number is fixed when an index is made.
type Frozen[W data.Word, V any] struct {
	label string
	open  func(threads int) (*pando.Frozen[W, V], error)
	Ix    *pando.Frozen[W, V]
	ways  int // number of threads that ix uses
}

// OpenFrozen builds the index for one thread.
func OpenFrozen[W data.Word, V any](label string, keys []W, vals []V, opts ...pando.Option) (*Frozen[W, V], error) {
	return OpenFrozenFor(1, label, keys, vals, opts...)
}

// OpenFrozenFor builds the index for the given number of threads.
func OpenFrozenFor[W data.Word, V any](threads int, label string, keys []W, vals []V, opts ...pando.Option) (*Frozen[W, V], error) {
	f := &Frozen[W, V]{label: label}
	f.open = func(threads int) (*pando.Frozen[W, V], error) {
		all := append([]pando.Option{pando.On(pando.CPU), pando.Workers(threads)}, opts...)
		return pando.Freeze(keys, vals, all...)
	}
	return f, f.SetThreads(threads)
}

// SetThreads makes batches run on n goroutines.
func (f *Frozen[W, V]) SetThreads(n int) error {
	if f.ways == n {
		return nil
	}
	f.Close()
	ix, err := f.open(n)
	if err != nil {
		return err
	}
	f.Ix, f.ways = ix, n
	return nil
}

// Name returns the name of its row.
func (f *Frozen[W, V]) Name() string { return f.label }

// Close frees what it holds.
func (f *Frozen[W, V]) Close() {
	if f.Ix != nil {
		f.Ix.Close() // frees memory; there is nothing to lose
		f.Ix, f.ways = nil, 0
	}
}

// BytesPerEntry counts everything, including padding between segments.
func (f *Frozen[W, V]) BytesPerEntry() float64 { return perEntry(f.Ix.Stats()) }

func perEntry(st pando.Stats) float64 { return float64(st.TotalBytes) / float64(max(1, st.Len)) }

// Rank counts the keys below each query.
func (f *Frozen[W, V]) Rank(q []W, ranks []int) { f.Ix.RankBatch(q, ranks) }

// FrozenMap is Pando with words as keys and values.
type FrozenMap[W data.Word] struct{ *Frozen[W, W] }

// Make returns Pando with further options.
func Make[W data.Word](label string, opts ...pando.Option) peers.Maker[W] {
	return peers.Maker[W]{Name: label, Peak: 1.25 * data.PairBytes[W](), Build: func(d *data.Dataset[W]) (peers.System[W], error) {
		f, err := OpenFrozen(label, d.Keys, d.Vals, opts...)
		return FrozenMap[W]{f}, err
	}}
}

// MakePairs returns Pando with pairs in its leaves.
func MakePairs[W data.Word]() peers.Maker[W] {
	return Make[W](NamePairs, pando.Layout(pando.Pairs))
}

// MakeApart returns Pando with keys and values apart.
func MakeApart[W data.Word]() peers.Maker[W] {
	return Make[W](NameApart, pando.Layout(pando.Apart))
}

// Layouts returns Pando in both layouts, the default first.
func Layouts[W data.Word]() []peers.Maker[W] { return []peers.Maker[W]{MakePairs[W](), MakeApart[W]()} }

// Pages returns Pando with each of the three ways to use pages, the
// default first.
func Pages[W data.Word]() []peers.Maker[W] {
	return []peers.Maker[W]{
		Make[W]("Pando, all huge", pando.HugePages(pando.HugeAll)),
		Make[W]("Pando, inner nodes huge", pando.HugePages(pando.HugeInner)),
		Make[W]("Pando, small pages", pando.HugePages(pando.SmallPages)),
	}
}

// Get answers a batch, and counts the hits.
func (f FrozenMap[W]) Get(q, vals []W, found []bool) int { return f.Ix.GetBatch(q, vals, found) }

// Each makes one call per query.
func (f FrozenMap[W]) Each(q, vals []W) (hits int) {
	for i, k := range q {
		v, ok := f.Ix.Get(k)
		vals[i] = v
		if ok {
			hits++
		}
	}
	return hits
}

// Chain makes one call per query, each of which waits for the one before.
func (f FrozenMap[W]) Chain(q, vals []W, mask W) (hits int) {
	var v W
	var ok bool
	for i, k := range q {
		v, ok = f.Ix.Get(k ^ v&mask)
		vals[i] = v
		if ok {
			hits++
		}
	}
	return hits
}

// Ranges lists the entries of ranges.
func (f FrozenMap[W]) Ranges(lo, hi []W, out *peers.Flat[W]) {
	r := f.Ix.RangeBatch(lo, hi, 0)
	out.Keys, out.Vals, out.Ends = r.Keys, r.Vals, r.Offsets[1:]
}

// Scan iterates over all entries with All.
func (f FrozenMap[W]) Scan() (keySum, valSum W) {
	for k, v := range f.Ix.All() {
		keySum, valSum = keySum+k, valSum+v
	}
	return keySum, valSum
}

// ScanRange iterates over all entries with Range over the whole domain.
func (f FrozenMap[W]) ScanRange() (keySum, valSum W) {
	for k, v := range f.Ix.Range(0, ^W(0)) {
		keySum, valSum = keySum+k, valSum+v
	}
	return keySum, valSum
}

// FrozenSet is Pando with keys but no values.
type FrozenSet[W data.Word] struct{ *Frozen[W, struct{}] }

// OpenFrozenSet builds a set for one thread.
func OpenFrozenSet[W data.Word](keys []W) (FrozenSet[W], error) {
	f, err := OpenFrozen(contest.Pando, keys, make([]struct{}, len(keys)))
	return FrozenSet[W]{f}, err
}

// OpenSetBlocked is the same with blocked nodes.
func OpenSetBlocked[W data.Word](label string, keys []W) (FrozenSet[W], error) {
	f, err := OpenFrozen(label, keys, make([]struct{}, len(keys)), pando.Layout(pando.Blocked))
	return FrozenSet[W]{f}, err
}

// FreezeOnce builds an index as the build experiment times it.
func FreezeOnce[W data.Word](d *data.Dataset[W], threads int) (peers.Made[W], error) {
	ix, err := pando.Freeze(d.Keys, d.Vals, pando.On(pando.CPU), pando.Workers(threads))
	if err != nil {
		return peers.Made[W]{}, err
	}
	return peers.Made[W]{Entries: ix.Len(), Get: ix.Get, Close: func() { ix.Close() }, Inner: ix.Stats().InnerBytes, All: peers.GetsBy[W](ix.GetBatch)}, nil
}

// FreezeSet builds an index of keys without values as fast-build times it.
func FreezeSet[W data.Word](where pando.Device, kind pando.LayoutKind) func(*data.Dataset[W], int) (peers.Made[W], error) {
	return func(d *data.Dataset[W], threads int) (peers.Made[W], error) {
		ix, err := pando.Freeze(d.Keys, make([]struct{}, len(d.Keys)), pando.On(where), pando.Workers(threads), pando.Layout(kind))
		if err != nil {
			return peers.Made[W]{}, err
		}
		get := func(k W) (v W, ok bool) {
			if _, ok = ix.Get(k); ok {
				v = data.ValueOf(k)
			}
			return v, ok
		}
		return peers.Made[W]{Entries: ix.Len(), Get: get, Close: func() { ix.Close() }}, nil
	}
}

// NotThere returns why an index of these keys is not on the requested device,
// "" if it is.
func NotThere[W data.Word](d *data.Dataset[W], where pando.Device, kind pando.LayoutKind) (string, error) {
	ix, err := pando.Freeze(d.Keys, make([]struct{}, len(d.Keys)), pando.On(where), pando.Layout(kind))
	if err != nil {
		return "", err
	}
	defer ix.Close()
	if st := ix.Stats(); st.Device != where {
		return fmt.Sprintf("the index is on %v: %s", st.Device, st.Reason), nil
	}
	return "", nil
}

// FrozenGPU is Pando with words as keys and values on a GPU, and its report
// about that when it was made.
type FrozenGPU[W data.Word] struct {
	*Frozen[W, W]
	where  pando.Device
	reason string
}

// OpenOnGPU builds the index for GPU i. If Pando put it elsewhere, since an
// index that fails on a GPU falls back to the CPU, that is an error here.
func OpenOnGPU[W data.Word](i, threads int, d *data.Dataset[W]) (*FrozenGPU[W], error) {
	where := pando.GPU(i)
	f, err := OpenFrozenFor(threads, NameGPU, d.Keys, d.Vals, pando.On(where))
	if err != nil {
		return nil, err
	}
	st := f.Ix.Stats()
	if st.Device != where {
		f.Close()
		return nil, fmt.Errorf("the index is on %v: %s", st.Device, st.Reason)
	}
	return &FrozenGPU[W]{f, where, st.Reason}, nil
}

// Strayed returns the reason, if any, why batches have been answered elsewhere
// since.
func (f *FrozenGPU[W]) Strayed() string {
	if st := f.Ix.Stats(); st.Device != f.where || st.Reason != f.reason {
		return st.Reason
	}
	return ""
}

// Placed is Pando with words as keys and values on a requested device.
type Placed[W data.Word] struct {
	*Frozen[W, W]
	where pando.Device // where Pando has put it
}

// OpenPlaced builds the index for a device, and notes what it reports about
// where it is. It returns nil, and prints a line with the reason, if the index
// could not be placed there; but an index that Pando measured and then left on
// the CPU is what was requested.
func OpenPlaced[W data.Word](s *contest.Session, label string, where pando.Device, d *data.Dataset[W], opts ...pando.Option) (*Placed[W], error) {
	s.Say("building %s, %s ...", label, contest.SizeText(len(d.Keys)))
	f, err := OpenFrozenFor(contest.AllCores(), label, d.Keys, d.Vals, append([]pando.Option{pando.On(where)}, opts...)...)
	if err != nil {
		return nil, err
	}
	st := f.Ix.Stats()
	if st.Device != where && !strings.HasPrefix(st.Reason, "measured") && !s.Elsewhere {
		f.Close()
		s.Skip("%s at n %s: it is on %v: %s", label, contest.SizeText(len(d.Keys)), st.Device, st.Reason)
		return nil, nil
	}
	if where != pando.CPU {
		s.Note("%s at n %s: %v, %.1f of %.1f MiB on the GPU; %s", label, contest.SizeText(len(d.Keys)), st.Device,
			float64(st.DeviceBytes)/contest.Mega, float64(st.TotalBytes)/contest.Mega, st.Reason)
	}
	return &Placed[W]{f, st.Device}, nil
}

// GetPairs answers a batch on the device.
func (p *Placed[W]) GetPairs(keys, vals []W, found []bool) (hits int) {
	return p.Ix.GetBatch(keys, vals, found)
}

// Down returns the reason if batches have been answered elsewhere since.
func (p *Placed[W]) Down() error {
	if st := p.Ix.Stats(); st.Device != p.where {
		return errors.New(st.Reason)
	}
	return nil
}

// deviceOf returns the device that a row of this name is about.
func deviceOf(s *contest.Session, label string) pando.Device {
	switch label {
	case NameHybrid:
		return pando.Hybrid(s.GPU)
	case NameGPU:
		return pando.GPU(s.GPU)
	}
	return pando.CPU
}

// OpenAll returns the indexes with these names, except those that are
// impossible here.
func OpenAll[W data.Word](s *contest.Session, d *data.Dataset[W], labels ...string) ([]*Placed[W], error) {
	var out []*Placed[W]
	for _, label := range labels {
		ix, err := OpenPlaced(s, label, deviceOf(s, label), d)
		if err != nil {
			peers.CloseAll(out)
			return nil, err
		}
		if ix != nil {
			out = append(out, ix)
		}
	}
	return out, nil
}

// OpenCapped opens an index on CPU and GPU of which the GPU may take a tenth
// of the memory that other takes in all.
func OpenCapped[W data.Word](s *contest.Session, d *data.Dataset[W], other *Placed[W]) (*Placed[W], error) {
	room := other.Ix.Stats().TotalBytes / 10
	label := fmt.Sprintf("%s, DeviceMemory %.0f MiB", NameHybrid, float64(room)/contest.Mega)
	return OpenPlaced(s, label, pando.Hybrid(s.GPU), d, pando.DeviceMemory(max(room, 1)))
}

// Batcher makes a Batcher with the default wait; size 0 means the default.
func (p *Placed[W]) Batcher(size int) (get func(W) (W, bool), stop func() error) {
	b := p.Ix.Batcher(0, size)
	return b.Get, b.Close
}
