package pandocluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/pandocluster/internal/consensus"
	"github.com/pando-index/pando/pandocluster/internal/machine"
	"github.com/pando-index/pando/pandocluster/internal/packet"
	"github.com/pando-index/pando/pandoserver"
)

// This file is a node as pandoserver sees it: one ordered map.

var (
	_ pandoserver.Changer    = (*Node)(nil)
	_ pandoserver.Asker      = (*Node)(nil)
	_ pandoserver.Sequential = (*Node)(nil)
)

// Sequential implements pandoserver.Sequential: each range does one batch behind the other, by its log. Several ranges do not agree on
// an order, whatever a server that is one of many clients does; and it must not have those wait who are served, behind a range that is down.
func (n *Node) Sequential() {}

// operation returns the context of an operation.
func (n *Node) operation() (context.Context, context.CancelFunc) {
	return context.WithTimeout(n.ctx, n.o.Timeout)
}

// must panics where a read has failed.
func must(err error) {
	if err != nil {
		panic(&Unavailable{err})
	}
}

// group is keys of one range.
type group struct {
	route
	at []int // which of the keys
}

// grouped puts keys together by range. It returns false if the range of one is not known.
func (n *Node) grouped(keys []string, at []int) (groups []*group, ok bool) {
	by := map[uint64]*group{}
	var last *group
	for _, i := range at {
		if last == nil || !last.bounds.Contains(keys[i]) {
			r, ok := n.routes.find(keys[i])
			if !ok {
				return nil, false
			}
			if last = by[r.id]; last == nil {
				last = &group{route: r}
				by[r.id] = last
				groups = append(groups, last)
			}
		}
		last.at = append(last.at, i)
	}
	return groups, true
}

func numbers(n int) []int {
	at := make([]int, n)
	for i := range at {
		at[i] = i
	}
	return at
}

// inGroups does something with keys by range, until it is done with all of them: f returns false for keys that are not in the range, or if it
// cannot be reached. An error of f ends it.
func (n *Node) inGroups(ctx context.Context, keys []string, f func(g *group) (done bool, err error)) error {
	left := numbers(len(keys))
	var final error
	err := n.retry(ctx, func() error {
		groups, ok := n.grouped(keys, left)
		if !ok {
			return ErrUnavailable
		}
		done, errs := make([]bool, len(groups)), make([]error, len(groups))
		var all sync.WaitGroup
		for i, g := range groups[1:] {
			all.Go(func() { done[i+1], errs[i+1] = f(g) })
		}
		done[0], errs[0] = f(groups[0])
		all.Wait()
		left = left[:0:0]
		for i, g := range groups {
			if final == nil || errors.Is(errs[i], ErrUnknown) { // which says less than any other
				final = errs[i]
			}
			if !done[i] {
				left = append(left, g.at...)
			}
		}
		if final != nil || len(left) == 0 {
			return nil
		}
		slices.Sort(left)
		return ErrUnavailable
	})
	if final != nil {
		return final
	}
	return err
}

// get reads keys.
func (n *Node) get(ctx context.Context, keys []string, vals [][]byte, found []bool) error {
	if len(keys) == 0 {
		return n.usable()
	}
	return n.inGroups(ctx, keys, func(g *group) (bool, error) { return n.getFrom(ctx, g, keys, vals, found), nil })
}

// of returns the keys of a group.
func (g *group) of(keys []string) []string {
	own := make([]string, len(g.at))
	for i, at := range g.at {
		own[i] = keys[at][:min(len(keys[at]), mostKey+1)] // no longer key is there, and it would not be this one
	}
	return own
}

// local reads keys from a replica of this node. It returns false if that does not have all of them.
func (g *group) local(r *consensus.Replica, own []string, vals [][]byte, found []bool) bool {
	v, f := make([][]byte, len(own)), make([]bool, len(own))
	if !r.Machine().Get(own, v, f) {
		return false
	}
	for i, at := range g.at {
		vals[at], found[at] = v[i], f[i]
	}
	return true
}

// getFrom reads keys of a range, here if there is a replica.
func (n *Node) getFrom(ctx context.Context, g *group, keys []string, vals [][]byte, found []bool) bool {
	own := g.of(keys)
	if r := n.replica(g.id); r != nil && r.Heard() < n.o.Beat {
		sub, cancel := context.WithTimeout(ctx, 2*n.o.Beat)
		err := n.fresh(sub, r)
		cancel()
		if err == nil && g.local(r, own, vals, found) {
			return true
		}
	}
	for lo := 0; lo < len(own); {
		hi, size := lo, 0
		for ; hi < len(own) && size < answerBytes; hi++ {
			size += len(own[hi])
		}
		b := packet.Uint(nil, uint64(hi-lo))
		for _, k := range own[lo:hi] {
			b = packet.Bytes(b, k)
		}
		r, err := n.read(ctx, g.id, askGet, b)
		if err != nil {
			return false
		}
		some := int(r.Uint())
		if r.Err() != nil || some == 0 || some > hi-lo {
			return false
		}
		for _, at := range g.at[lo : lo+some] {
			vals[at] = nil
			if found[at] = r.Bool(); found[at] {
				vals[at] = r.Bytes()
			}
		}
		if r.Err() != nil {
			return false
		}
		lo += some
	}
	return true
}

// GetBatch implements pandoserver.Source.
func (n *Node) GetBatch(keys []string, vals [][]byte, found []bool) (hits int) {
	ctx, cancel := n.operation()
	defer cancel()
	must(n.get(ctx, keys, vals, found))
	for _, f := range found[:len(keys)] {
		if f {
			hits++
		}
	}
	return hits
}

// GetStale is GetBatch without asking other nodes, where a replica of this one is at most as old as a bound, by this machine's clock: it
// has all that was acknowledged before. So it answers at once, and for as long as the bound without a majority. Where it is
// older, or is not here, GetStale asks the others as GetBatch does. age says how old the oldest value may be, 0 if all are of now.
func (n *Node) GetStale(bound time.Duration, keys []string, vals [][]byte, found []bool) (age time.Duration, err error) {
	if len(keys) == 0 {
		return 0, n.usable()
	}
	ctx, cancel := n.operation()
	defer cancel()
	var mu sync.Mutex
	err = n.inGroups(ctx, keys, func(g *group) (bool, error) {
		old, ok := n.getStale(bound, g, keys, vals, found)
		if !ok {
			return n.getFrom(ctx, g, keys, vals, found), nil
		}
		mu.Lock()
		defer mu.Unlock()
		age = max(age, old)
		return true, nil
	})
	return age, err
}

// getStale reads keys of a range here, if what is here is not too old.
func (n *Node) getStale(bound time.Duration, g *group, keys []string, vals [][]byte, found []bool) (age time.Duration, ok bool) {
	r := n.replica(g.id)
	if r == nil {
		return 0, false
	}
	at, ok := r.Since()
	if !ok || time.Since(at) > bound || !g.local(r, g.of(keys), vals, found) {
		return 0, false
	}
	return time.Since(at), true
}

// HasBatch implements pandoserver.Asker.
func (n *Node) HasBatch(keys []string, found []bool) (hits int) {
	return n.GetBatch(keys, make([][]byte, len(keys)), found)
}

// Apply implements pandoserver.Changer. In each range all of it is done, or nothing; an error may be one of some ranges.
func (n *Node) Apply(ops []pando.Op, keys []string, vals [][]byte, found []bool) error {
	if len(keys) == 0 {
		return n.usable()
	}
	for i, k := range keys {
		if len(k) > mostKey && ops[i] != pando.OpGet || ops[i] == pando.OpSet && len(vals[i]) > mostValue {
			return ErrTooLong
		}
	}
	ctx, cancel := n.operation()
	defer cancel()
	old := make([][]byte, 0)
	if found != nil {
		old = make([][]byte, len(keys))
	}
	var some atomic.Bool
	err := n.inGroups(ctx, keys, func(g *group) (bool, error) {
		b := machine.NewBatch(found != nil)
		if found != nil && vals == nil {
			b.PresenceOnly()
		}
		for _, i := range g.at {
			switch ops[i] {
			case pando.OpGet:
				b.Get(keys[i])
			case pando.OpSet:
				b.Set(keys[i], vals[i])
			case pando.OpDelete:
				b.Delete(keys[i])
			}
		}
		res, err := n.batch(ctx, g.id, b)
		if err != nil || res.Status != machine.Done {
			return false, err
		}
		some.Store(true)
		if found != nil && len(res.Found) == len(g.at) {
			for j, i := range g.at {
				found[i], old[i] = res.Found[j], res.Vals[j]
			}
		}
		return true, nil
	})
	if err == nil && found != nil && vals != nil {
		copy(vals, old)
	}
	return partly(err, some.Load())
}

// partly returns the error of a change of which some was done: nobody may take it for one of which nothing was.
func partly(err error, some bool) error {
	if some && err != nil && !errors.Is(err, ErrUnknown) {
		return wrong(ErrUnknown, fmt.Errorf("it was made in some ranges, and not in others: %v", err))
	}
	return err
}

// batch proposes a batch to a range.
func (n *Node) batch(ctx context.Context, id uint64, b *machine.Batch) (machine.Result, error) {
	if b.Size() > machine.MostBatch {
		return machine.Result{}, ErrTooLong
	}
	parts := b.Size() > machine.MostEntry
	res, err := n.changeIn(ctx, sessionKey{id, parts}, func(c machine.Call) ([][]byte, []byte) {
		if parts {
			return c.Parts(b)
		}
		return nil, c.Batch(b)
	})
	if err == nil && res.Status == machine.Outside {
		n.routes.born(id, res.Bounds, res.Born)
	}
	if err == nil && res.Status == machine.TooLong {
		return res, ErrTooLong
	}
	return res, err
}

// Update implements pandoserver.Changer. f may be asked again where others change the key meanwhile.
func (n *Node) Update(key string, f func(old []byte, had bool) (val []byte, keep bool)) error {
	ctx, cancel := n.operation()
	defer cancel()
	return n.update(ctx, key, f)
}

func (n *Node) update(ctx context.Context, key string, f func(old []byte, had bool) (val []byte, keep bool)) error {
	keys, vals, found := []string{key}, make([][]byte, 1), make([]bool, 1)
	for {
		if err := n.get(ctx, keys, vals, found); err != nil {
			return err
		}
		val, keep := f(vals[0], found[0])
		if !keep && !found[0] {
			return nil
		}
		if keep && (len(key) > mostKey || len(val) > mostValue) {
			return ErrTooLong
		}
		differs := false
		err := n.inGroups(ctx, keys, func(g *group) (bool, error) {
			done, other, err := n.swap(ctx, g.id, key, vals[0], found[0], val, keep)
			differs = other
			return done, err
		})
		if err != nil || !differs {
			return err
		}
	}
}

// swap sets or deletes a key if it has a value. differs says that it has another.
func (n *Node) swap(ctx context.Context, id uint64, key string, old []byte, had bool, val []byte, keep bool) (done, differs bool, err error) {
	b := machine.NewBatch(false)
	b.If(key, old, had)
	if keep {
		b.Set(key, val)
	} else {
		b.Delete(key)
	}
	res, err := n.batch(ctx, id, b)
	return res.Status == machine.Done || res.Status == machine.Differs, res.Status == machine.Differs, err
}
