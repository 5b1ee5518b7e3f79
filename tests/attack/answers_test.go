package attack

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/facetest"
)

// answers makes an index and compares what it answers with a sorted slice.
func (p pair[K, V]) answers(c *testCase) error {
	f := drawConfig(c.rng)
	c.use()
	return p.compare(c, f, 3+upTo(c.rng, 40))
}

// faults does the same on a device that fails at some moment, of itself or for
// want of memory.
func (p pair[K, V]) faults(c *testCase) error {
	f := drawConfig(c.rng)
	f.on = pick(c.rng, pando.GPU(0), pando.Hybrid(0))
	c.use()
	c.gpu.at = pick(c.rng, 0, 0, 0, 1, 2)
	c.gpu.plan = faulty.Plan{At: 1 + upTo(c.rng, 2000), Lose: oneIn(c.rng, 2)}
	if oneIn(c.rng, 2) {
		c.gpu.plan.Op = pick(c.rng, faulty.Ops()...)
		c.gpu.plan.At = 1 + upTo(c.rng, 60)
	}
	if oneIn(c.rng, 5) {
		c.gpu.memory = 1 + int64(upTo(c.rng, 4<<20))
	}
	c.note("device %d of %d bytes fails at %v %d, lost %v", c.gpu.at, c.gpu.memory, c.gpu.plan.Op, c.gpu.plan.At, c.gpu.plan.Lose)
	return p.compare(c, f, 3+upTo(c.rng, 15))
}

// compare makes the index of a configuration and asks it so many times.
func (p pair[K, V]) compare(c *testCase, f config, steps int) error {
	defer f.force()()
	keys, vals := p.drawEntries(c, &f)
	c.note("%s: %v", p.name(), f)
	model := facetest.NewModel(slices.Clone(keys), slices.Clone(vals), p.vals.Same)
	k := frozenKind[K, V]()
	ix, err := p.made(c, k, f, keys, vals)
	if err != nil || ix == nil {
		return err
	}
	defer ix.Close()
	s := &subject[K, V]{testCase: c, pair: p, kind: k, ix: ix, model: model, most: 20_000}
	if ix.Stats().Device != pando.CPU { // the interpreter takes its time
		s.most = pick(c.rng, 100, 100, 100, 300, 300, 300, 300, 300, 4200, 4200, 4200, 20_000)
		steps = min(steps, 12)
	}
	for range steps {
		if err := s.step(); err != nil {
			return err
		}
	}
	if c.gpu.plan.At == 0 && c.gpu.memory == plenty {
		if err := stayed(ix.Stats(), f); err != nil {
			return err
		}
	}
	return c.closed(ix)
}

// stayed returns an error for an index that is not on the device asked for,
// though that has not failed and has room.
func stayed(st pando.Stats, f config) error {
	elsewhere := f.interpreted() && f.room == 0 && !f.prefer && st.Device != f.on
	if elsewhere && !strings.Contains(st.Reason, "searched on the CPU") {
		return fmt.Errorf("on %v, not on %v: %s", st.Device, f.on, st.Reason)
	}
	return gaveUp(st)
}

// gaveUp returns an error for an index whose device has failed: kernels read
// and write inside of their memory, whatever that holds.
func gaveUp(st pando.Stats) error {
	if strings.Contains(st.Reason, "GPU failed") {
		return errors.New(st.Reason)
	}
	return nil
}
