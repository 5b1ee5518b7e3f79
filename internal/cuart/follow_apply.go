package cuart

import (
	"errors"
	"slices"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/backlog"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/radix"
)

// Apply does a batch, all of it or nothing: on the GPU, if it takes it. What the GPU has
// not done the CPU does.
func (f *Follower) Apply(b *Batch) error {
	n := len(b.Keys)
	if f.opts.Changes == 0 || n < f.opts.Changes || f.down.Load() != nil {
		return f.hostFirst(b)
	}
	f.changing.Lock()
	defer f.changing.Unlock()
	m := f.measure(b)
	var long *some
	for lo := 0; lo < n; { // as much as the log takes at a time
		p := f.cut(b, m, lo)
		f.log.Begin(lockedBytes(p.layout.end))
		if lo == 0 {
			var err error
			if long, err = f.applyLong(b, m); err != nil {
				f.log.End()
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
// none, and returns them, or nil where there are none. The stripes are held.
func (f *Follower) applyLong(b *Batch, m *measured) (*some, error) {
	if !slices.Contains(m.long, true) {
		return nil, nil
	}
	s := f.some(b, 0, func(key string) bool { return len(key) > f.tree.longest })
	if err := f.cpu.Apply(&s.Ops); err != nil {
		return nil, err
	}
	f.long += s.more()
	return s, nil
}

// hostFirst does a batch to the tree in host memory. Its keys are noted, or, where they
// are many, the copy has it, too, when it returns.
func (f *Follower) hostFirst(b *Batch) (err error) {
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
			return b.Keys
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

// onGPU does a part of a batch on the GPU, but for keys that are too long, and accepts
// it. The stripes are held.
func (f *Follower) onGPU(b *Batch, p *part) error {
	if err := f.Down(); err != nil {
		return err
	}
	if err := f.catchUp(); err != nil {
		return err
	}
	if !f.log.Pending() {
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
		err = errors.Join(err, f.tree.run.Stream.Synchronize()) // copies may be under way
		r.Free()
		return err
	}
	f.handOut(b, p)
	return nil
}

// accept does operations that are on the device, and accepts them. No search comes
// between: what one has found, all find.
func (f *Follower) accept(b *Batch, r *run, ops *Ops) error {
	f.using.Lock()
	defer f.using.Unlock()
	before := f.tree.Len()
	if err := f.do(b, r, ops); err != nil {
		f.fail(err) // before others search
		return err
	}
	if b.Deleted != nil {
		*b.Deleted += before - f.tree.Len()
	}
	f.log.Accept(r, f.tree.Len()+f.long)
	return nil
}

// instead does operations of a batch from lo on in host memory, but for keys that are too
// long, since the GPU could not. Where others of the batch are done, these must be, too,
// as what was accepted must.
func (f *Follower) instead(b *Batch, lo int, begun bool) error {
	f.log.Alone()
	defer f.log.End()
	s := f.some(b, lo, func(key string) bool { return len(key) <= f.tree.longest })
	do := func() error { return f.cpu.Apply(&s.Ops) }
	if begun {
		backlog.Insist(do)
	} else if err := do(); err != nil {
		return err
	}
	s.report(f, b)
	return nil
}

// some is operations of a batch that are done in host memory.
type some struct {
	radix.Ops
	rows []int // which of the batch; nil for all
}

// row returns which operation of the batch is the j-th.
func (s *some) row(j int) int {
	if s.rows == nil {
		return j
	}
	return s.rows[j]
}

// all returns all operations of a batch.
func (f *Follower) all(b *Batch) *some {
	s := &some{Ops: radix.Ops{Keys: b.Keys}}
	f.complete(s, b)
	return s
}

// some returns those of operations from lo on whose key is so.
func (f *Follower) some(b *Batch, lo int, is func(key string) bool) *some {
	s := &some{rows: make([]int, 0)}
	for i, key := range b.Keys[lo:] {
		if is(key) {
			s.Keys, s.rows = append(s.Keys, key), append(s.rows, lo+i)
		}
	}
	f.complete(s, b)
	return s
}

// complete sets what operations are, whose keys are known, and takes memory for what
// they find.
func (f *Follower) complete(s *some, b *Batch) {
	n := len(s.Keys)
	s.Kind, s.Workers, s.Found = op.Kind(b.Kind), f.opts.Workers, make([]bool, n)
	if len(b.Old) > 0 {
		s.Old = make([]uint64, n)
	}
	if b.Kinds != nil {
		s.Kinds = make([]op.Kind, n)
		for j := range s.Kinds {
			s.Kinds[j] = op.Kind(b.Kinds[s.row(j)])
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

// more returns how many entries there are more than before.
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

// report tells the caller what the operations have found.
func (s *some) report(f *Follower, b *Batch) {
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
