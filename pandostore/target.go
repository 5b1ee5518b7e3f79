package pandostore

import (
	"io"
	"reflect"
	"strings"
	"unsafe"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
)

// target is the tree of a store without its types, as sequencer and recovery see it.
type target struct {
	h   *live.Handle
	typ reflect.Type // of keys
}

// targetOf returns the target that a *pando.Tree is.
func targetOf(tree any) target {
	h, typ := index.HandleOf(tree)
	return target{h.(*live.Handle), typ}
}

// moment is a snapshot without its types.
type moment interface {
	io.WriterTo
	Len() int
	Close() error
}

func (t target) columns() (*index.Columns, error) { return t.h.Inside(t.typ).Columns() }

func (t target) get(key order.Probe) (index.Value, bool) { return t.h.Get(key) }

// beyond returns the first entry above a key, or the last below; of all entries without
// a key.
func (t target) beyond(key *order.Probe, down bool) (order.Probe, index.Value, bool) {
	from := index.NoEdge
	if key != nil {
		from = index.Edge{Key: *key, Open: true}
	}
	at, val, ok := t.h.Nearest(from, down)
	at.Text = strings.Clone(at.Text)
	return at, val, ok
}

func (t target) swap(key order.Probe, val index.Value) (old index.Value, had bool, err error) {
	return t.h.Swap(key, val)
}

func (t target) set(key order.Probe, val index.Value) error { return t.h.Set(key, val) }

// delete deletes a key. Like all that deletes it may fail for want of memory, where a tree panics: the
// goroutine that finds out is often not the one that asked.
func (t target) delete(key order.Probe) (old index.Value, had bool, err error) {
	old, had, err = t.h.Open().Delete(key)
	return old, had, index.Public(err)
}

// apply does a batch. Where found is not nil, and operations are not all of one kind, it sets
// values to those before. It returns how many entries were deleted if all operations delete.
func (t target) apply(b *index.Batch, found []bool) (deleted int, err error) {
	switch {
	case b.Kinds == nil && b.Kind == op.Set:
		return 0, t.h.SetBatch(b.Keys, b.Vals)
	case b.Kinds == nil && b.Kind == op.Delete:
		deleted, err = t.h.Open().DeleteBatch(b.Keys, found)
		return deleted, index.Public(err)
	}
	ops := unsafe.Slice((*uint8)(unsafe.Pointer(unsafe.SliceData(b.Kinds))), len(b.Kinds))
	return 0, t.h.Apply(ops, b.Keys, b.Vals, found)
}

func (t target) deleteRange(keys order.Keys) (deleted int, err error) {
	deleted, err = t.h.Open().DeleteRange(keys.Probe(0), keys.Probe(1))
	return deleted, index.Public(err)
}

// reading calls f, which reads the tree, and returns why there is none any more if it panics: the
// GPU that alone held it may be lost.
func reading(f func()) (err error) {
	defer func() {
		p := recover()
		if text, ok := p.(string); ok {
			err = index.Public(index.Problem(index.ErrDeviceLost, "%s", strings.TrimPrefix(text, "pando: ")))
		} else if p != nil {
			panic(p)
		}
	}()
	f()
	return nil
}

func (t target) snapshot() moment { return snapshotOf(t.h) }

// bind makes the memory limit count.
func (t target) bind() { t.h.Inside(t.typ).Bind() }

func (t target) close() error { return t.h.Close() }

// frozen is a moment.
type frozen struct{ index.Handle }

func snapshotOf(h *live.Handle) *frozen {
	f := new(frozen)
	f.BeginLater(h.Key, h.Snapshot())
	return f
}

func (f *frozen) Len() int { return f.Open().Len() }

// loose keeps the MemoryLimit of a tree from counting before bind: to bring a tree back may
// take more memory than it took in its first life.
func loose(o *index.Options) { o.Loose = true }

// options returns the options of a tree that is loaded, with its note.
func (c *config) options(note string) []pando.Option {
	return append(c.tree[:len(c.tree):len(c.tree)], loose, pando.Note(note))
}
