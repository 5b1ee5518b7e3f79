package attack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/files"
)

// forgeries is how many times the file of a case is damaged.
const forgeries = 8

// files makes a file, damages it in several ways, and opens it in every way: it
// is refused with an error for files, or answers, rightly if Verify has found it
// good; and nothing is read outside of it.
func (p pair[K, V]) files(c *testCase) error {
	f := drawConfig(c.rng)
	f.on, f.limit, f.room, f.source = pando.CPU, 0, 0, "damaged"
	f.n = min(f.n, pick(c.rng, 70, 700, 5000))
	if !p.serves(f.layout) {
		f.layout = pando.AutoLayout
	}
	c.use()
	c.gpu.steps = 50_000_000
	defer f.force()()
	good, model, err := p.fileOf(c, &f)
	if err != nil {
		return err
	}
	c.note("%s: %v", p.name(), f)
	second := f
	second.n = pick(c.rng, edges...)
	other, _, err := p.fileOf(c, &second)
	if err != nil {
		return err
	}
	c.tried = forgeries
	notes := len(c.notes)
	for i := range forgeries {
		c.notes = append(c.notes[:notes:notes], fmt.Sprintf("forgery %d", i))
		file := &forger{rng: c.rng, data: slices.Clone(good), other: other, note: c.note}
		mended := file.forge()
		if err := p.opened(c, f, model, good, file.data, mended); err != nil {
			return err
		}
	}
	return nil
}

// fileOf returns the bytes of a file of an index, and its model.
func (p pair[K, V]) fileOf(c *testCase, f *config) ([]byte, *facetest.Model[K, V], error) {
	keys, vals := p.drawEntries(c, f)
	ix, err := pando.Freeze(keys, vals, append(f.building(), p.codec...)...)
	if err != nil {
		return nil, nil, err
	}
	defer ix.Close()
	var b bytes.Buffer
	_, err = ix.WriteTo(&b)
	return b.Bytes(), facetest.NewModel(keys, vals, p.vals.Same), err
}

// opened opens a damaged file in every way.
func (p pair[K, V]) opened(c *testCase, f config, model *facetest.Model[K, V], good, data []byte, mended mend) error {
	path := filepath.Join(c.dir, "damaged.pando")
	os.Remove(path) // overwriting would change what is mapped still
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	_, inspected := pando.Inspect(path)
	verified := pando.Verify(path)
	for way, err := range map[string]error{"Inspect": inspected, "Verify": verified} {
		if err != nil && !isOf(err, pando.ErrFile, pando.ErrVersion) {
			return fmt.Errorf("%s: %w", way, err)
		}
	}
	if err := noticed(good, data, mended, inspected, verified); err != nil {
		return err
	}
	c.note("Inspect: %v; Verify: %v", inspected, verified)
	for _, on := range []pando.Device{pando.CPU, pick(c.rng, pando.GPU(0), pando.Hybrid(0))} {
		if on != pando.CPU && oneIn(c.rng, 2) {
			continue
		}
		opts := append([]pando.Option{pando.On(on), pando.Workers(pick(c.rng, 1, 2))}, p.codec...)
		if err := p.asked(c, path, model, inspected, verified, opts); err != nil {
			return fmt.Errorf("on %v: %w", on, err)
		}
	}
	return nil
}

// noticed returns an error where damage must have been found and was not:
// header and sizes by all, the rest by Verify, as long as no checksum was
// mended.
func noticed(good, data []byte, mended mend, inspected, verified error) error {
	if bytes.Equal(good, data) {
		return errors.Join(inspected, verified)
	}
	header := len(data) < files.Page || !bytes.Equal(good[:files.Page], data[:files.Page]) || len(good) != len(data)
	switch {
	case verified == nil && mended == mendNothing:
		return errors.New("Verify has not found the damage")
	case header && inspected == nil && mended == mendNothing:
		return errors.New("Inspect has not found the damage of the header")
	case inspected != nil && verified == nil:
		return fmt.Errorf("Verify finds a file good that is not: %w", inspected)
	}
	return nil
}

func isOf(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(k error) bool { return errors.Is(err, k) })
}

// asked opens a file on a device, with Verified and without, and asks what it
// gets.
func (p pair[K, V]) asked(c *testCase, path string, model *facetest.Model[K, V], inspected, verified error, opts []pando.Option) error {
	k := frozenKind[K, V]()
	checked, err := k.open(path, append(opts, pando.Verified())...)
	if err == nil {
		err = checked.Close()
	}
	if err != nil && !isOf(err, pando.ErrFile, pando.ErrVersion, pando.ErrType) {
		return fmt.Errorf("Open with Verified: %w", err)
	}
	ix, err := k.open(path, opts...)
	switch {
	case err != nil && !isOf(err, pando.ErrFile, pando.ErrVersion, pando.ErrType):
		return fmt.Errorf("Open: %w", err)
	case err != nil && verified == nil && !errors.Is(err, pando.ErrType):
		return fmt.Errorf("Open refuses what Verify finds good: %w", err)
	case err == nil && inspected != nil:
		ix.Close()
		return fmt.Errorf("Open takes what Inspect refuses: %w", inspected)
	case err != nil:
		return nil
	}
	defer ix.Close()
	s := &subject[K, V]{testCase: c, pair: p, kind: k, ix: ix, model: model, most: pick(c.rng, 50, 200, 200, 3000)}
	if verified == nil {
		return p.good(s)
	}
	return s.damaged()
}

// good asks an index of a file that was changed and found good: it is right,
// with whatever entries it has.
func (p pair[K, V]) good(s *subject[K, V]) error {
	var keys []K
	var vals []V
	text := facetest.PanicOf(func() {
		for k, v := range s.ix.All() {
			keys, vals = append(keys, k), append(vals, v)
		}
	})
	if strings.Contains(text, undecodable) {
		return nil // what values are is known to the codec alone
	}
	if text != "" {
		return errors.New(text)
	}
	s.model = facetest.NewModel(keys, vals, p.vals.Same)
	for range 10 {
		if err := s.step(); err != nil {
			return fmt.Errorf("found good by Verify: %w", err)
		}
	}
	return nil
}

// undecodable is in the panic over a value that a codec refuses.
const undecodable = "cannot be decoded"

// damaged asks an index of a file that is damaged: any answer will do, and the
// panic over a value that cannot be decoded, and the device stays in use.
func (s *subject[K, V]) damaged() error {
	for range 12 {
		op := pick(s.rng, s.kind.operations...)
		if op.name == "Save" {
			continue // what is damaged may be saved, but need not be good
		}
		s.note("%s", op.name)
		err := guarded(func() error { _ = op.do(s); return nil })
		if err != nil && !strings.Contains(err.Error(), undecodable) {
			return fmt.Errorf("%s: %w", op.name, err)
		}
	}
	s.compared.Add(12)
	return gaveUp(s.ix.Stats())
}
