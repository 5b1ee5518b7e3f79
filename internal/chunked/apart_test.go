package chunked

import (
	"errors"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
)

// apart sets keys, with values that come while keys are sorted, and fetches while
// the tree is written.
func (r *rig[C]) apart(keys, vals []C, bring, fetch func() error) (err error) {
	ops := &Ops{N: len(keys), Kind: op.Set, Keys: r.put(arena.Bytes(keys)), Vals: r.put(make([]byte, len(arena.Bytes(vals)))), Fetch: fetch}
	st, e := r.dev.NewStream()
	must(r.t, e)
	ops.Bring = func() error {
		if err := bring(); err != nil {
			return err
		}
		return errors.Join(st.CopyIn(ops.Vals, arena.Bytes(vals)), st.Synchronize())
	}
	defer func() { // also where it panics
		must(r.t, errors.Join(r.tree.Wait(), r.dev.Free(ops.Keys), r.dev.Free(ops.Vals), st.Close()))
	}()
	return r.tree.Apply(ops)
}

// A batch whose values do not come has not happened; one that nobody could fetch
// from has. A panic on the way is no different.
func TestApart(t *testing.T) {
	first := seed.Of(t)
	for i := range 4 {
		flat := i%2*2 - 1
		r := newRig[uint64](t, ptx.New(ptx.Seed(first)), Options{Flat: flat})
		keys, vals := make([]uint64, 500), make([]uint64, 500)
		for i := range keys {
			keys[i] = uint64(i) * 7919 % 1009
		}
		if i >= 2 { // to be sorted again, when it is known that a part of the key is not enough
			r.tree.shortcut, keys[0] = 1, 1<<63
		}
		failed := errors.New("failed")
		fine := func() error { return nil }
		fails := func() error { return failed }
		panics := func() error { panic(failed) }
		for i, way := range []struct {
			bring, fetch func() error
			done, err    bool
		}{{fine, fine, true, false}, {fails, fine, false, true}, {fine, fails, true, true}, {panics, fine, false, true}, {fine, panics, true, true}, {fine, fine, true, false}} {
			for j := range vals {
				keys[j] += uint64(i)
				vals[j] = uint64(1000*i + j)
			}
			err := func() (err error) {
				defer func() {
					if v := recover(); v != nil {
						err = v.(error)
					}
				}()
				return r.apart(keys, vals, way.bring, way.fetch)
			}()
			if errors.Is(err, failed) != way.err || err != nil != way.err {
				t.Errorf("flat %d, way %d: %v", flat, i, err)
			}
			if way.done {
				for j, k := range keys {
					r.model[k] = vals[j]
				}
			}
			r.check()
			must(t, r.tree.Check())
		}
		if i >= 2 && r.tree.luck == (luck{}) {
			t.Error("no batch was sorted by a part of the key")
		}
		must(t, r.tree.Close())
	}
}
