package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/pando-index/pando"
)

// Only this file, pando_text.go and pando_tree.go use Pando's public API.

// The names of Pando's rows.
const (
	namePando      = "Pando"
	namePandoPairs = "Pando pairs"
	namePandoApart = "Pando apart"
)

// frozen is a Pando index that can be rebuilt for another number of threads:
// the number is fixed when an index is made.
type frozen[W word, V any] struct {
	label string
	open  func(threads int) (*pando.Frozen[W, V], error)
	ix    *pando.Frozen[W, V]
	ways  int // number of threads that ix uses
}

// openFrozen builds the index for one thread.
func openFrozen[W word, V any](label string, keys []W, vals []V, opts ...pando.Option) (*frozen[W, V], error) {
	return openFrozenFor(1, label, keys, vals, opts...)
}

// openFrozenFor builds the index for the given number of threads.
func openFrozenFor[W word, V any](threads int, label string, keys []W, vals []V, opts ...pando.Option) (*frozen[W, V], error) {
	f := &frozen[W, V]{label: label}
	f.open = func(threads int) (*pando.Frozen[W, V], error) {
		all := append([]pando.Option{pando.On(pando.CPU), pando.Workers(threads)}, opts...)
		return pando.Freeze(keys, vals, all...)
	}
	return f, f.SetThreads(threads)
}

func (f *frozen[W, V]) SetThreads(n int) error {
	if f.ways == n {
		return nil
	}
	f.Close()
	ix, err := f.open(n)
	if err != nil {
		return err
	}
	f.ix, f.ways = ix, n
	return nil
}

func (f *frozen[W, V]) Name() string { return f.label }

func (f *frozen[W, V]) Close() {
	if f.ix != nil {
		f.ix.Close() // frees memory; there is nothing to lose
		f.ix, f.ways = nil, 0
	}
}

// BytesPerEntry counts everything, including padding between segments.
func (f *frozen[W, V]) BytesPerEntry() float64 { return perEntry(f.ix.Stats()) }

func perEntry(st pando.Stats) float64 { return float64(st.TotalBytes) / float64(max(1, st.Len)) }

func (f *frozen[W, V]) Rank(q []W, ranks []int) { f.ix.RankBatch(q, ranks) }

// frozenMap is Pando with words as keys and values.
type frozenMap[W word] struct{ *frozen[W, W] }

// makePando returns Pando with further options.
func makePando[W word](label string, opts ...pando.Option) maker[W] {
	return maker[W]{name: label, peak: 1.25 * pairBytes[W](), build: func(d *dataset[W]) (system[W], error) {
		f, err := openFrozen(label, d.keys, d.vals, opts...)
		return frozenMap[W]{f}, err
	}}
}

func makePandoPairs[W word]() maker[W] {
	return makePando[W](namePandoPairs, pando.Layout(pando.Pairs))
}

func makePandoApart[W word]() maker[W] {
	return makePando[W](namePandoApart, pando.Layout(pando.Apart))
}

// pandoLayouts returns Pando in both layouts, the default first.
func pandoLayouts[W word]() []maker[W] { return []maker[W]{makePandoPairs[W](), makePandoApart[W]()} }

// pandoPages returns Pando with each of the three ways to use pages, the
// default first.
func pandoPages[W word]() []maker[W] {
	return []maker[W]{
		makePando[W]("Pando, all huge", pando.HugePages(pando.HugeAll)),
		makePando[W]("Pando, inner nodes huge", pando.HugePages(pando.HugeInner)),
		makePando[W]("Pando, small pages", pando.HugePages(pando.SmallPages)),
	}
}

func (f frozenMap[W]) Get(q, vals []W, found []bool) int { return f.ix.GetBatch(q, vals, found) }

func (f frozenMap[W]) Each(q, vals []W) (hits int) {
	for i, k := range q {
		v, ok := f.ix.Get(k)
		vals[i] = v
		if ok {
			hits++
		}
	}
	return hits
}

func (f frozenMap[W]) Chain(q, vals []W, mask W) (hits int) {
	var v W
	var ok bool
	for i, k := range q {
		v, ok = f.ix.Get(k ^ v&mask)
		vals[i] = v
		if ok {
			hits++
		}
	}
	return hits
}

func (f frozenMap[W]) Ranges(lo, hi []W, out *flat[W]) {
	r := f.ix.RangeBatch(lo, hi, 0)
	out.keys, out.vals, out.ends = r.Keys, r.Vals, r.Offsets[1:]
}

// Scan iterates over all entries with All.
func (f frozenMap[W]) Scan() (keySum, valSum W) {
	for k, v := range f.ix.All() {
		keySum, valSum = keySum+k, valSum+v
	}
	return keySum, valSum
}

// scanRange iterates over all entries with Range over the whole domain.
func (f frozenMap[W]) scanRange() (keySum, valSum W) {
	for k, v := range f.ix.Range(0, ^W(0)) {
		keySum, valSum = keySum+k, valSum+v
	}
	return keySum, valSum
}

// frozenSet is Pando with keys but no values.
type frozenSet[W word] struct{ *frozen[W, struct{}] }

func openFrozenSet[W word](keys []W) (frozenSet[W], error) {
	f, err := openFrozen(namePando, keys, make([]struct{}, len(keys)))
	return frozenSet[W]{f}, err
}

// openSetBlocked is the same with blocked nodes.
func openSetBlocked[W word](label string, keys []W) (frozenSet[W], error) {
	f, err := openFrozen(label, keys, make([]struct{}, len(keys)), pando.Layout(pando.Blocked))
	return frozenSet[W]{f}, err
}

// freezeOnce builds an index as the build experiment times it.
func freezeOnce[W word](d *dataset[W], threads int) (made[W], error) {
	ix, err := pando.Freeze(d.keys, d.vals, pando.On(pando.CPU), pando.Workers(threads))
	if err != nil {
		return made[W]{}, err
	}
	return made[W]{entries: ix.Len(), get: ix.Get, close: func() { ix.Close() }, inner: ix.Stats().InnerBytes, all: getsBy[W](ix.GetBatch)}, nil
}

// freezeSet builds an index of keys without values as fast-build times it.
func freezeSet[W word](where pando.Device, kind pando.LayoutKind) func(*dataset[W], int) (made[W], error) {
	return func(d *dataset[W], threads int) (made[W], error) {
		ix, err := pando.Freeze(d.keys, make([]struct{}, len(d.keys)), pando.On(where), pando.Workers(threads), pando.Layout(kind))
		if err != nil {
			return made[W]{}, err
		}
		get := func(k W) (v W, ok bool) {
			if _, ok = ix.Get(k); ok {
				v = valueOf(k)
			}
			return v, ok
		}
		return made[W]{entries: ix.Len(), get: get, close: func() { ix.Close() }}, nil
	}
}

// notThere returns why an index of these keys is not on the requested device,
// "" if it is.
func notThere[W word](d *dataset[W], where pando.Device, kind pando.LayoutKind) (string, error) {
	ix, err := pando.Freeze(d.keys, make([]struct{}, len(d.keys)), pando.On(where), pando.Layout(kind))
	if err != nil {
		return "", err
	}
	defer ix.Close()
	if st := ix.Stats(); st.Device != where {
		return fmt.Sprintf("the index is on %v: %s", st.Device, st.Reason), nil
	}
	return "", nil
}

// frozenGPU is Pando with words as keys and values on a GPU, and its report
// about that when it was made.
type frozenGPU[W word] struct {
	*frozen[W, W]
	where  pando.Device
	reason string
}

// openOnGPU builds the index for GPU i. If Pando put it elsewhere, since an
// index that fails on a GPU falls back to the CPU, that is an error here.
func openOnGPU[W word](i, threads int, d *dataset[W]) (*frozenGPU[W], error) {
	where := pando.GPU(i)
	f, err := openFrozenFor(threads, namePandoGPU, d.keys, d.vals, pando.On(where))
	if err != nil {
		return nil, err
	}
	st := f.ix.Stats()
	if st.Device != where {
		f.Close()
		return nil, fmt.Errorf("the index is on %v: %s", st.Device, st.Reason)
	}
	return &frozenGPU[W]{f, where, st.Reason}, nil
}

// strayed returns the reason, if any, why batches have been answered elsewhere
// since.
func (f *frozenGPU[W]) strayed() string {
	if st := f.ix.Stats(); st.Device != f.where || st.Reason != f.reason {
		return st.Reason
	}
	return ""
}

// placed is Pando with words as keys and values on a requested device.
type placed[W word] struct {
	*frozen[W, W]
	where pando.Device // where Pando has put it
}

// openPlaced builds the index for a device, and notes what it reports about
// where it is. It returns nil, and prints a line with the reason, if the index
// could not be placed there; but an index that Pando measured and then left on
// the CPU is what was requested.
func openPlaced[W word](s *session, label string, where pando.Device, d *dataset[W], opts ...pando.Option) (*placed[W], error) {
	s.say("building %s, %s ...", label, sizeText(len(d.keys)))
	f, err := openFrozenFor(allCores(), label, d.keys, d.vals, append([]pando.Option{pando.On(where)}, opts...)...)
	if err != nil {
		return nil, err
	}
	st := f.ix.Stats()
	if st.Device != where && !strings.HasPrefix(st.Reason, "measured") && !s.elsewhere {
		f.Close()
		s.skip("%s at n %s: it is on %v: %s", label, sizeText(len(d.keys)), st.Device, st.Reason)
		return nil, nil
	}
	if where != pando.CPU {
		s.note("%s at n %s: %v, %.1f of %.1f MiB on the GPU; %s", label, sizeText(len(d.keys)), st.Device,
			float64(st.DeviceBytes)/mega, float64(st.TotalBytes)/mega, st.Reason)
	}
	return &placed[W]{f, st.Device}, nil
}

func (p *placed[W]) GetPairs(keys, vals []W, found []bool) (hits int) {
	return p.ix.GetBatch(keys, vals, found)
}

// Down returns the reason if batches have been answered elsewhere since.
func (p *placed[W]) Down() error {
	if st := p.ix.Stats(); st.Device != p.where {
		return errors.New(st.Reason)
	}
	return nil
}

// deviceOf returns the device that a row of this name is about.
func deviceOf(s *session, label string) pando.Device {
	switch label {
	case namePandoHybrid:
		return pando.Hybrid(s.gpu)
	case namePandoGPU:
		return pando.GPU(s.gpu)
	}
	return pando.CPU
}

// openAll returns the indexes with these names, except those that are
// impossible here.
func openAll[W word](s *session, d *dataset[W], labels ...string) ([]*placed[W], error) {
	var out []*placed[W]
	for _, label := range labels {
		ix, err := openPlaced(s, label, deviceOf(s, label), d)
		if err != nil {
			closeAll(out)
			return nil, err
		}
		if ix != nil {
			out = append(out, ix)
		}
	}
	return out, nil
}

// openCapped opens an index on CPU and GPU of which the GPU may take a tenth
// of the memory that other takes in all.
func openCapped[W word](s *session, d *dataset[W], other *placed[W]) (*placed[W], error) {
	room := other.ix.Stats().TotalBytes / 10
	label := fmt.Sprintf("%s, DeviceMemory %.0f MiB", namePandoHybrid, float64(room)/mega)
	return openPlaced(s, label, pando.Hybrid(s.gpu), d, pando.DeviceMemory(max(room, 1)))
}

// batcher makes a Batcher with the default wait; size 0 means the default.
func (p *placed[W]) batcher(size int) (get func(W) (W, bool), stop func() error) {
	b := p.ix.Batcher(0, size)
	return b.Get, b.Close
}
