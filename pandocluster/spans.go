package pandocluster

import (
	"context"
	"iter"

	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandocluster/internal/packet"
	"github.com/pando-index/pando/pandoserver"
)

// This file is what a node does with the keys of a span, which may be in several ranges.

// spanOf returns bounds of pandoserver's as a span.
func spanOf(b pandoserver.Bounds) (s machine.Span) {
	if b.From != pandoserver.Open {
		s.Lo, s.After = b.Lo, b.From == pandoserver.Without
	}
	switch b.To {
	case pandoserver.With:
		s.Hi, s.With = b.Hi, true
	case pandoserver.Without:
		s.Hi, s.Before = b.Hi, true
	}
	// No key is as long as such a bound: it lies between those that begin as it does, and the next.
	if len(s.Lo) > mostKey {
		s.Lo, s.After = s.Lo[:mostKey], true
	}
	if len(s.Hi) > mostKey {
		s.Hi, s.Before, s.With = s.Hi[:mostKey], false, true
	}
	return s
}

// inOrder goes through the ranges of a span, in order or backwards: f is told which part of the span is left, and returns which
// bounds it has done. It ends when f says so.
func (n *Node) inOrder(ctx context.Context, s machine.Span, down bool, f func(id uint64, s machine.Span) (of machine.Bounds, end bool, err error)) error {
	for {
		var of machine.Bounds
		var end bool
		err := n.retry(ctx, func() error {
			r, ok := n.endOf(s, down)
			if !ok {
				return ErrUnavailable
			}
			var err error
			of, end, err = f(r.id, s)
			if err == nil && !end && !reaches(of, s, down) { // it has not what it was asked for
				n.routes.born(r.id, of, nil)
				return ErrUnavailable
			}
			return err
		})
		if err != nil || end {
			return err
		}
		if down {
			if of.Lo == "" || of.Lo <= s.Lo {
				return nil
			}
			s.Hi, s.Before, s.With = of.Lo, true, false
		} else {
			if of.Hi == "" || (s.Before && of.Hi >= s.Hi) || (s.With && of.Hi > s.Hi) {
				return nil
			}
			s.Lo, s.After = of.Hi, false
		}
	}
}

// endOf returns the range at the end of a span at which a walk begins.
func (n *Node) endOf(s machine.Span, down bool) (route, bool) {
	if !down {
		return n.routes.find(s.Lo)
	}
	n.routes.mu.Lock()
	defer n.routes.mu.Unlock()
	for i := len(n.routes.list) - 1; i >= 0; i-- {
		if r := n.routes.list[i]; reaches(r.bounds, s, down) {
			return r, true
		}
	}
	return route{}, false
}

// reaches reports whether bounds have the end of a span at which a walk begins.
func reaches(b machine.Bounds, s machine.Span, down bool) bool {
	switch {
	case !down:
		return b.Contains(s.Lo)
	case s.With:
		return b.Contains(s.Hi)
	case s.Before:
		return b.Lo < s.Hi && (b.Hi == "" || b.Hi >= s.Hi) || s.Hi == b.Lo && s.Hi == ""
	}
	return b.Hi == ""
}

// Count implements pandoserver.Source. Keys of several ranges are not counted at one moment, but each range at one.
func (n *Node) Count(b pandoserver.Bounds) int {
	ctx, cancel := n.operation()
	defer cancel()
	count, err := n.count(ctx, spanOf(b))
	must(err)
	return count
}

func (n *Node) count(ctx context.Context, s machine.Span) (count int, err error) {
	if empty(s) {
		return 0, nil
	}
	err = n.inOrder(ctx, s, false, func(id uint64, s machine.Span) (of machine.Bounds, end bool, err error) {
		r, err := n.read(ctx, id, askCount, s.AppendTo(nil))
		if err != nil {
			return of, false, err
		}
		of = machine.Bounds{Lo: r.String(), Hi: r.String()}
		if more := int(r.Uint()); r.Err() == nil && of.Contains(s.Lo) {
			count += more
		}
		return of, false, r.Err()
	})
	return count, err
}

// empty reports whether no key can be in a span.
func empty(s machine.Span) bool {
	return (s.Before || s.With) && (s.Lo > s.Hi || s.Lo == s.Hi && (s.After || s.Before))
}

// Len implements pandoserver.Source.
func (n *Node) Len() int { return n.Count(pandoserver.Bounds{}) }

// At implements pandoserver.Source. As for Count, each range is looked at by itself.
func (n *Node) At(i int) (key string, val []byte, ok bool) {
	if i < 0 {
		return "", nil, false
	}
	ctx, cancel := n.operation()
	defer cancel()
	must(n.inOrder(ctx, machine.Span{}, false, func(id uint64, s machine.Span) (of machine.Bounds, end bool, err error) {
		r, err := n.read(ctx, id, askAt, packet.Uint(nil, uint64(i)))
		if err != nil {
			return of, false, err
		}
		of = machine.Bounds{Lo: r.String(), Hi: r.String()}
		count, found := int(r.Uint()), r.Bool()
		switch {
		case r.Err() != nil || !of.Contains(s.Lo):
			return of, false, r.Err()
		case !found:
			i -= count
			return of, false, nil
		}
		key, val, ok = r.String(), r.Bytes(), true
		return of, true, r.Err()
	}))
	return key, val, ok
}

// Scan implements pandoserver.Source. It reads some entries at a time: each read sees all that was there when it began.
func (n *Node) Scan(b pandoserver.Bounds) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		s, limit := spanOf(b), uint64(64)
		if empty(s) {
			return
		}
		for {
			keys, vals, more := n.page(s, b.Descending, limit)
			limit = min(4*limit, 1<<16)
			for i, k := range keys {
				if !yield(k, vals[i]) {
					return
				}
			}
			if !more {
				return
			}
			if last := keys[len(keys)-1]; b.Descending {
				s.Hi, s.Before, s.With = last, true, false
			} else {
				s.Lo, s.After = last, true
			}
		}
	}
}

// page returns the first entries of a span, one at least if there is one, and whether there may be more.
func (n *Node) page(s machine.Span, down bool, limit uint64) (keys []string, vals [][]byte, more bool) {
	ctx, cancel := n.operation()
	defer cancel()
	must(n.inOrder(ctx, s, down, func(id uint64, s machine.Span) (of machine.Bounds, end bool, err error) {
		r, err := n.read(ctx, id, askPage, packet.Uint(packet.Bool(s.AppendTo(nil), down), limit))
		if err != nil {
			return of, false, err
		}
		of = machine.Bounds{Lo: r.String(), Hi: r.String()}
		rest := r.Bool()
		count := r.Count()
		if !reaches(of, s, down) {
			return of, false, r.Err()
		}
		some, with := make([]string, 0, count), make([][]byte, 0, count)
		for range count {
			some, with = append(some, r.String()), append(with, r.Bytes())
		}
		if r.Err() != nil {
			return of, false, r.Err()
		}
		keys, vals = append(keys, some...), append(vals, with...)
		more = rest || uint64(len(keys)) >= limit
		return of, more && len(keys) > 0, nil
	}))
	return keys, vals, more && len(keys) > 0
}

// DeleteRange implements pandoserver.Changer.
func (n *Node) DeleteRange(b pandoserver.Bounds) (deleted int, err error) {
	ctx, cancel := n.operation()
	defer cancel()
	s := spanOf(b)
	if empty(s) {
		return 0, n.usable()
	}
	var final error
	err = n.inOrder(ctx, s, false, func(id uint64, s machine.Span) (of machine.Bounds, end bool, err error) {
		r, ok := n.routes.of(id)
		if !ok {
			return of, false, ErrUnavailable
		}
		part, some := s.Within(r.bounds)
		if !some {
			return r.bounds, false, nil
		}
		res, err := n.change(ctx, id, func(c machine.Call) ([][]byte, []byte) { return nil, c.Clear(part) })
		switch {
		case err != nil:
			final = err
			return of, true, nil
		case res.Status == machine.Outside:
			n.routes.born(id, res.Bounds, res.Born)
			return of, false, ErrUnavailable
		}
		deleted += res.N
		return r.bounds, false, nil
	})
	if final != nil {
		err = final
	}
	return deleted, partly(err, deleted > 0)
}
