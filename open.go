package pando

import (
	"fmt"
	"reflect"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/simd"
	"github.com/pando-index/pando/internal/snapshot"
	"github.com/pando-index/pando/internal/text"
)

// Open makes an index of a file that Save has written. The file is the index:
// it is mapped read-only and nothing of it is copied, so that Open takes the
// same short time for a file of any size, and programs that open the same file
// share its memory. Header and section table are always checked, against the
// file's size too; Verified checks all the rest.
//
// K and V must be the types the index was made with, by kind and width (int is
// int64; a named type is what it is made of), or the error is ErrType. Values
// that hold pointers need the option Values. A file that is damaged or not one
// of Pando's gives ErrFile, one of a later version ErrVersion.
//
// A file whose sections are damaged, opened without Verified, gives wrong
// answers, or panics over a value that cannot be decoded, but reads nothing
// outside itself. A bool among the values may then be neither true nor false.
//
// The file may be replaced (by Save, or by a rename) or removed while it is
// open: the index stays what it was until Close. It must not be overwritten or
// cut short in place; to read what is gone ends the program.
//
// Of the options, On, Workers, ResponseTime and Values mean what they mean for
// Freeze. But
// Auto stays on the CPU, since a copy to a GPU takes longer the larger the
// file is. MemoryLimit is not touched by a mapped file, whose memory is the
// system's to take back at any time; HugePages does nothing. Layout, if given,
// must be the file's. On systems without mmap (Windows) the file is read into
// memory, within MemoryLimit; all else is the same.
func Open[K Key, V any](path string, opts ...Option) (*Frozen[K, V], error) {
	c, err := configure(opts)
	if err != nil {
		return nil, err
	}
	codec, err := codecOf[V](c)
	if err != nil {
		return nil, err
	}
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := suits[K, V](f, c, codec); err != nil {
		return nil, err
	}
	if c.verified {
		if err := snapshot.Verify(f, f.Header); err != nil {
			return nil, f.fail(err)
		}
	}
	ix, err := openIndex[K](f, c, codec)
	if err != nil {
		return nil, f.fail(err)
	}
	ix.values = codec
	ix.describe(int(f.Entries), c)
	ix.stats.Pages = SmallPages
	frozen := new(Frozen[K, V])
	frozen.live.Store(ix)
	return frozen, nil
}

// Verified makes Open read the whole file and check every checksum first. It
// has no meaning for Freeze.
func Verified() Option { return func(c *config) { c.verified = true } }

// suits says whether a file holds such keys and values.
func suits[K Key, V any](f *file, c config, codec *valueCodec[V]) error {
	key, value := keyName[K](), valueName[V]()
	switch {
	case f.Key != key || f.Value != value:
		return fmt.Errorf("%w: %s has keys of type %s and values of type %s; it was opened for %s and %s", ErrType, f.path, f.Key, f.Value, key, value)
	case f.ValSize != valSize[V]():
		return fmt.Errorf("%w: %s has values of type %s with %d bytes each; on this machine they have %d", ErrType, f.path, f.Value, f.ValSize, valSize[V]())
	case codec == nil && !pointerFree(reflect.TypeFor[V]()):
		return fmt.Errorf("%w: %s has values of type %s; give Open the option Values", ErrValues, f.path, f.Value)
	case !f.hasLayout(c.layout):
		return fmt.Errorf("%w: %s has layout %v, not %v; leave Layout out", ErrLayout, f.path, f.Layout, c.layout)
	}
	return nil
}

// openIndex maps the file and makes an engine over it.
func openIndex[K Key, V any](f *file, c config, codec *valueCodec[V]) (*index[K, V], error) {
	block, err := f.Map(c.limit)
	if err != nil {
		return nil, err
	}
	var ix *index[K, V]
	switch order.Width[K]() {
	case 32:
		ix, err = openFixed[K, uint32](f, block, c, codec)
	case 64:
		ix, err = openFixed[K, uint64](f, block, c, codec)
	default:
		ix, err = openText[K](f, block, c, codec)
	}
	if err != nil {
		block.Release()
	}
	return ix, err
}

// openFixed makes the engine for keys with codes of type C.
func openFixed[K Key, C order.Code, V any](f *file, block *arena.Block, c config, codec *valueCodec[V]) (*index[K, V], error) {
	cfg := f.treeConfig()
	tree, err := openTree[C](int(f.Entries), cfg, block)
	if err != nil {
		return nil, err
	}
	e := &fixed[K, C, V]{codec: order.NewCodec[K, C](), tree: tree, n: int(f.Entries), kind: cfg.kind, pairs: cfg.Leaves == implicit.Pairs}
	if inlineSize[V]() == 0 {
		rows := mappedRows[V](f, block)
		e.coded = mappedCoded(f, block, codec)
		if e.coded == nil {
			e.keepRows(rows)
		}
	}
	e.schedule(c)
	ix := &index[K, V]{engine: e, stats: e.stats()}
	ix.stats.HeapBytes, ix.stats.TotalBytes = 0, f.Size
	ix.stats.ValueBytes += f.valueBytes()
	if c.device.kind == auto {
		ix.stats.Device, ix.stats.Reason = CPU, fromFile
		return ix, nil
	}
	ix.stats.Device, ix.stats.Reason, err = e.attach(c)
	return ix, err
}

// openText makes the engine for string keys.
func openText[K Key, V any](f *file, block *arena.Block, c config, codec *valueCodec[V]) (*index[K, V], error) {
	keys, err := f.openList(block)
	if err != nil {
		return nil, err
	}
	e := &words[K, V]{
		list:    keys,
		layout:  f.Layout,
		rows:    mappedRows[V](f, block),
		coded:   mappedCoded(f, block, codec),
		n:       int(f.Entries),
		workers: par.Workers(c.workers),
	}
	e.fetchVals()
	ix := &index[K, V]{engine: e}
	e.describe(&ix.stats)
	ix.stats.LeafBytes = e.list.Bytes() - ix.stats.InnerBytes
	ix.stats.HeapBytes, ix.stats.ValueBytes, ix.stats.TotalBytes = 0, f.valueBytes(), f.Size
	if c.device.kind == auto {
		ix.stats.Device, ix.stats.Reason = CPU, fromFile
		return ix, nil
	}
	ix.stats.Device, ix.stats.Reason, err = e.attach(c)
	return ix, err
}

// fromFile is why Auto leaves a file on the CPU.
const fromFile = "opened from a file: ask with On(GPU(0)) to copy it to a GPU"

// mappedRows gives the values that lie in the file as they are; as many as
// there are entries, also where a V takes no memory.
func mappedRows[V any](f *file, block *arena.Block) []V {
	if k := f.index(snapshot.Rows); k >= 0 {
		return arena.As[V](block.Segment(k))[:f.Entries]
	}
	if f.ValSize == 0 && f.index(snapshot.ValueOffsets) < 0 {
		return make([]V, f.Entries)
	}
	return nil
}

// mappedCoded gives the values that a codec has written, nil if there are none.
func mappedCoded[V any](f *file, block *arena.Block, codec *valueCodec[V]) *coded[V] {
	k := f.index(snapshot.ValueOffsets)
	if k < 0 {
		return nil
	}
	return &coded[V]{block: text.Open(block.Segment(k), block.Segment(k+1), block), decode: codec.decode, path: f.path}
}

// valueBytes is the size of values outside of leaves and column.
func (f *file) valueBytes() (n int64) {
	for _, s := range f.Sections {
		switch s.Kind {
		case snapshot.Rows, snapshot.ValueOffsets, snapshot.ValueBytes:
			n += s.Bytes
		}
	}
	return n
}

// describe sets what Stats say of every index.
func (ix *index[K, V]) describe(n int, c config) {
	ix.n = n
	ix.stats.Len = n
	ix.stats.Path = simd.Active().String()
	ix.stats.Workers = par.Workers(c.workers)
	ix.stats.Pages = c.pages
}
