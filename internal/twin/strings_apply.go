package twin

import (
	"errors"
	"slices"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/cuart"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/radix"
)

// Apply does all operations of a batch or none: on the GPU if the batch is large enough
// and the GPU works, else on the CPU. The CPU also does the operations that a failing
// GPU leaves undone.
func (f *Strings) Apply(b *StringBatch) error {
	n := len(b.Keys)
	if !f.TakesChanges(n) {
		return f.hostFirst(b)
	}
	f.changing.Lock()
	defer f.changing.Unlock()
	m := f.measure(b)
	var long *some
	for lo := 0; lo < n; { // one part for each run of the log
		p := f.cut(b, m, lo)
		f.Log.Begin(lockedBytes(p.layout.end))
		if lo == 0 {
			var err error
			if long, err = f.applyLong(b, m); err != nil {
				f.Log.End()
				return err
			}
		}
		if err := f.onGPU(b, p); err != nil {
			f.fail(err)
			if err := f.instead(b, lo, lo > 0 || long != nil); err != nil {
				return err
			}
			break
		}
		lo = p.hi
	}
	if long != nil {
		long.report(f, b)
	}
	return nil
}

// applyLong does the operations of a batch on keys that are too long for the GPU, all or
// none, and returns them, or nil if there are none. The caller holds all stripes.
func (f *Strings) applyLong(b *StringBatch, m *measured) (*some, error) {
	if !slices.Contains(m.long, true) {
		return nil, nil
	}
	s := f.some(b, 0, func(key string) bool { return len(key) > f.tree.Longest() })
	if err := f.cpu.Apply(&s.Ops); err != nil {
		return nil, err
	}
	f.long += s.more()
	return s, nil
}

// hostFirst applies a batch to the tree in host memory. The keys of a small batch are
// noted for the copy on the GPU; a large batch is in the copy, too, when hostFirst
// returns.
func (f *Strings) hostFirst(b *StringBatch) (err error) {
	many := f.Takes(len(b.Keys))
	change := func() []string {
		if many {
			f.busy.Store(true)
			defer f.busy.Store(false)
		}
		s := f.all(b)
		if err = f.cpu.Apply(&s.Ops); err != nil {
			return nil
		}
		s.report(f, b)
		if !many {
			return slices.Clone(b.Keys)
		}
		if f.Down() == nil {
			if err := f.sendValues(b.Keys); err != nil {
				f.fail(err)
			}
		}
		return nil
	}
	f.Alone(change)
	return err
}

// onGPU does a part of a batch on the GPU, except operations on keys that are too
// long, and accepts it. The caller holds all stripes.
func (f *Strings) onGPU(b *StringBatch, p *stringPart) error {
	if err := f.Down(); err != nil {
		return err
	}
	if err := f.CatchUp(); err != nil {
		return err
	}
	if !f.Pending() {
		f.long = f.cpu.Len() - f.tree.Len()
	}
	r, err := f.newRun(b, p)
	if err != nil {
		return err
	}
	ops, err := f.pack(b, p, r)
	if err == nil {
		err = f.accept(b, r, ops)
	}
	if err != nil {
		err = errors.Join(err, f.tree.Stream().Synchronize()) // copies may be under way
		r.Free()
		return err
	}
	f.handOut(b, p)
	return nil
}

// accept does operations that are on the device, and adds their run to the log. It
// locks searches out meanwhile, so that a result which one search has seen is seen
// by all later ones.
func (f *Strings) accept(b *StringBatch, r *stringRun, ops *cuart.Ops) error {
	f.using.Lock()
	defer f.using.Unlock()
	before := f.tree.Len()
	if err := f.do(b, r, ops); err != nil {
		f.fail(err) // before it lets searches in
		return err
	}
	if b.Deleted != nil {
		*b.Deleted += before - f.tree.Len()
	}
	f.Log.Accept(r, f.tree.Len()+f.long)
	return nil
}

// instead does the operations of a batch from lo on in host memory after the GPU has
// failed, except those on keys that are too long, which are done. If begun, other
// operations of the batch are done already, and it retries until these are, too.
func (f *Strings) instead(b *StringBatch, lo int, begun bool) error {
	s := f.some(b, lo, func(key string) bool { return len(key) <= f.tree.Longest() })
	err := f.Instead(begun, func() error { return f.cpu.Apply(&s.Ops) })
	if err == nil {
		s.report(f, b)
	}
	return err
}

// some is a selection of a batch's operations, to be done in host memory.
type some struct {
	radix.Ops
	rows []int // their numbers in the batch; nil for all
}

// row returns the number in the batch of operation j.
func (s *some) row(j int) int {
	if s.rows == nil {
		return j
	}
	return s.rows[j]
}

// all selects all operations of a batch.
func (f *Strings) all(b *StringBatch) *some {
	s := &some{Ops: radix.Ops{Keys: b.Keys}}
	f.complete(s, b)
	return s
}

// some selects the operations from lo on whose key satisfies is.
func (f *Strings) some(b *StringBatch, lo int, is func(key string) bool) *some {
	s := &some{rows: make([]int, 0)}
	for i, key := range b.Keys[lo:] {
		if is(key) {
			s.Keys, s.rows = append(s.Keys, key), append(s.rows, lo+i)
		}
	}
	f.complete(s, b)
	return s
}

// complete sets kinds and values of operations whose keys are set, and allocates
// memory for their results.
func (f *Strings) complete(s *some, b *StringBatch) {
	n := len(s.Keys)
	s.Kind, s.Workers, s.Found = b.Kind, f.opts.Workers, make([]bool, n)
	if len(b.Old) > 0 {
		s.Old = make([]uint64, n)
	}
	if b.Kinds != nil {
		s.Kinds = make([]op.Kind, n)
		for j := range s.Kinds {
			s.Kinds[j] = b.Kinds[s.row(j)]
		}
	}
	if !b.sets() {
		return
	}
	s.Vals = make([]uint64, n)
	switch {
	case len(b.Vals) == 0:
	case f.ValBytes() == 4:
		for j, vals := 0, arena.As[uint32](b.Vals); j < n; j++ {
			s.Vals[j] = uint64(vals[s.row(j)])
		}
	default:
		for j, vals := 0, arena.As[uint64](b.Vals); j < n; j++ {
			s.Vals[j] = vals[s.row(j)]
		}
	}
}

// more returns by how many entries the operations have made the tree grow.
func (s *some) more() (n int) {
	for j, had := range s.Found {
		kind := s.Kind
		if s.Kinds != nil {
			kind = s.Kinds[j]
		}
		switch {
		case kind == op.Set && !had:
			n++
		case kind == op.Delete && had:
			n--
		}
	}
	return n
}

// report copies the results of the operations to the batch.
func (s *some) report(f *Strings, b *StringBatch) {
	if b.Deleted != nil {
		*b.Deleted -= s.more()
	}
	if b.Found == nil {
		return
	}
	for j, had := range s.Found {
		b.Found[s.row(j)] = had
	}
	if f.ValBytes() == 4 {
		for j, v := range s.Old {
			arena.As[uint32](b.Old)[s.row(j)] = uint32(v)
		}
		return
	}
	for j, v := range s.Old {
		arena.As[uint64](b.Old)[s.row(j)] = v
	}
}
