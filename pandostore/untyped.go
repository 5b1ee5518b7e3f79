package pandostore

import (
	"fmt"
	"reflect"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/disk"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
)

// untyped is a store whose types are known at run time only, for the command.
type untyped struct {
	c core
	h *live.Handle
}

func init() {
	live.SetStores(func(path string, key index.KeyType, typ reflect.Type, val *index.ValueType, opts any) (live.Store, error) {
		return openUntyped(path, key, typ, val, opts.([]Option))
	})
}

func openUntyped(path string, key index.KeyType, typ reflect.Type, val *index.ValueType, opts []Option) (live.Store, error) {
	dir, err := disk.Dir(path)
	if err != nil {
		return nil, noFolder(err)
	}
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	s := &untyped{h: new(live.Handle)}
	loaded := false
	load := func(name, note string) (target, error) {
		err := loadHandle(s.h, dir, name, key, typ, val, cfg.options(note))
		loaded = err == nil
		return target{s.h, typ}, err
	}
	if err := s.c.open(dir, cfg, load); err != nil {
		if loaded {
			s.h.Close()
		}
		return nil, translate(dir, err)
	}
	return s, nil
}

// loadHandle is loadTree without types.
func loadHandle(h *live.Handle, dir disk.Folder, name string, key index.KeyType, typ reflect.Type, val *index.ValueType, opts []pando.Option) error {
	o := index.NewOptions()
	for _, opt := range opts {
		opt(o)
	}
	if name == "" {
		if err := o.Check(index.Treeing); err != nil {
			return err
		}
		return h.Load(key, val, 0, nil, o)
	}
	if err := o.Check(index.TreeOpening); err != nil {
		return err
	}
	path := dir.Path(name)
	return h.OpenFile(key, typ, val, o, path, func() (*index.File, error) { return index.OpenFile(path) })
}

// Snapshot returns the entries of this moment.
func (s *untyped) Snapshot() *index.Handle { return &snapshotOf(s.h).Handle }

func (s *untyped) Len() int          { return s.h.Len() }
func (s *untyped) Checkpoint() error { return s.c.writeCheckpoint() }
func (s *untyped) Log() Log          { return s.c.stats() }
func (s *untyped) Close() error      { return s.c.close() }

func (s *untyped) SetBatch(keys order.Keys, vals index.Column) error { return s.c.setBatch(keys, vals) }

func (s *untyped) DeleteBatch(keys order.Keys, found []bool) (int, error) {
	return s.c.deleteBatch(keys, found)
}

func (c *core) setBatch(keys order.Keys, vals index.Column) error {
	if keys.Len() != vals.Len() {
		return fmt.Errorf("%w: %d keys, %d values", pando.ErrLength, keys.Len(), vals.Len())
	}
	r := newRequest(batching)
	r.batch = index.Batch{Kind: op.Set, Keys: keys, Vals: vals}
	return c.do(r)
}

func (c *core) deleteBatch(keys order.Keys, found []bool) (deleted int, err error) {
	r := newRequest(batching)
	r.batch, r.found = index.Batch{Kind: op.Delete, Keys: keys}, found
	if found != nil {
		r.found = found[:keys.Len()]
	}
	err = c.do(r)
	return r.n, err
}
