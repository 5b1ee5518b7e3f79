package attack

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/facetest"
)

// closing lets goroutines ask an index, each for ever, until another closes
// it: every answer is right, or is the panic of an index that was closed.
func (p pair[K, V]) closing(c *testCase) error {
	f := drawConfig(c.rng)
	f.limit, f.n = 0, min(f.n, 20_000)
	if !p.serves(f.layout) {
		f.layout = pando.AutoLayout
	}
	c.use()
	if f.interpreted() && oneIn(c.rng, 4) {
		c.gpu.plan = faulty.Plan{At: 1 + upTo(c.rng, 1000), Lose: oneIn(c.rng, 2)}
	}
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
	s := subject[K, V]{testCase: c, pair: p, kind: k, ix: ix, model: model, most: 5000, quiet: true}
	if f.interpreted() {
		s.most = 300
	}
	results := make(chan error)
	goroutines := 1 + c.rng.IntN(8)
	for range goroutines {
		own := s
		own.testCase = s.testCase.apart(c.rng.Uint64())
		go func() { results <- passedOn(own.untilClosed) }()
	}
	time.Sleep(time.Duration(c.rng.IntN(1000)) * time.Duration(pick(c.rng, 0, 1, 1, 3)) * time.Microsecond)
	closers := 1 + c.rng.IntN(2)
	for range closers {
		go func() { results <- passedOn(func() error { return c.closed(ix) }) }()
	}
	return firstOf(results, goroutines+closers)
}

// closed closes an index. Of a device that was to fail it may say so.
func (c *testCase) closed(ix io.Closer) error {
	if err := ix.Close(); err != nil && c.gpu.plan.At == 0 {
		return fmt.Errorf("Close: %w", err)
	}
	return nil
}

// apart returns the case for another goroutine, which draws from a seed of its
// own.
func (c *testCase) apart(seed uint64) *testCase {
	own := newCase(seed, c.dir)
	own.gpu.plan = c.gpu.plan
	own.parent = c
	return own
}

// untilClosed asks until the index panics, and returns an error unless that is
// because it was closed.
func (s *subject[K, V]) untilClosed() (err error) {
	last := ""
	defer func() {
		s.parent.compared.Add(s.compared.Load())
		if v := recover(); v != nil && !closedText(fmt.Sprint(v)) {
			err = fmt.Errorf("%s panics: %v\n%s", last, v, debug.Stack())
		}
	}()
	for {
		op := pick(s.rng, s.kind.operations...)
		last = op.name
		if err := op.do(s); errors.Is(err, pando.ErrClosed) {
			return nil // of a Tree, where the method returns an error
		} else if err != nil {
			return fmt.Errorf("%s%w", last, err)
		}
	}
}

// closedText reports whether a panic is that of an index, or a Batcher, that
// was closed.
func closedText(text string) bool {
	return facetest.ClosedText(text) || strings.HasPrefix(text, "pando: Batcher used after Close")
}
