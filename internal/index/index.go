// Package index has the parts of an index: an engine for numbers, one for strings,
// values, a device to run on, a file to lie in. Package pando is its face and knows
// key types; here keys are order.Keys and order.Probe, and values a Column or a
// Value, so that everything is compiled once, with the library, and nothing in the
// packages that use it.
//
// table.go names all layouts, and is the only place that does.
package index

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// Config says how an index is built and where it runs.
type Config struct {
	Device     Device
	DeviceOnly bool          // a map on a GPU has no copy in host memory
	Workers    int           // most goroutines; 0 for one per core
	Limit      int64         // most bytes to take; 0 for no limit
	Loose      bool          // of a tree: Limit does not count until Inside.Bind is called
	Pages      arena.Pages   // which memory goes on huge pages
	Layout     layout.Name   // layout.Auto for the best
	Layouts    *Layouts      // those to choose from; nil for the usual ones
	Room       int64         // most bytes of device memory; 0 for all that is free
	Response   time.Duration // how long a query may wait for others; 0 for no bound
	Verified   bool          // a file is checked whole before it is opened
	Note       string        // text about the index, for files

	Context Stopper // stops a build; nil for none
}

// Bound returns the limit that something is made with; 0 for none.
func (c *Config) Bound() int64 {
	if c.Loose {
		return 0
	}
	return c.Limit
}

// Stopper is the method of a context that a build calls. A context.Context in a Config,
// which an index keeps, would link the formatting of times into every program, for its
// method Deadline.
type Stopper interface{ Err() error }

// stopped returns an error if the build is to be stopped.
func (c *Config) stopped() error {
	if c.Context == nil || c.Context.Err() == nil {
		return nil
	}
	return fmt.Errorf("pando: building the index was stopped: %w", c.Context.Err())
}

// stop returns a function that reports whether the build is to be stopped, nil if it
// never is.
func (c *Config) stop() func() bool {
	if c.Context == nil {
		return nil
	}
	return func() bool { return c.Context.Err() != nil }
}

// Index is keys and their values, to be read: all that an index holds until it
// is closed.
type Index struct {
	Engine  Engine // finds entries; a field with a name, since its methods would be compiled again as those of Index
	holder  Holder // nil where values lie in values,
	finder  finder // which this engine is then
	values  Values
	n       int
	workers int
	key     KeyType
	codec   *Codec
	note    string // for files
	stats   Stats
	scratch par.Pool[[]int]
	walks   par.Pool[windows]
}

// Build makes an index of keys and their values, in any order. vals has none
// where a value takes no memory.
func Build(keys order.Keys, key KeyType, vals Column, val *ValueType, cfg Config, codec *Codec) (*Index, error) {
	in := values{at: vals.at, kept: val.kept, size: val.size}
	if cfg.Limit > 0 {
		var err error
		if in.off, err = val.need(vals, keys.Len()); err != nil {
			return nil, err
		}
	}
	b, err := build(keys, in, cfg)
	return complete(newIndex(keys.Len(), key, val, cfg, codec), b, err, vals, cfg)
}

// complete makes an index of an engine that was built, or of the error why it was
// not. vals are those that it does not hold.
func complete(ix *Index, built built, err error, vals Column, cfg Config) (*Index, error) {
	if errors.Is(err, op.ErrStopped) {
		err = cfg.stopped()
	}
	if err != nil {
		return nil, err
	}
	defer built.order.release()
	ix.use(built.Engine)
	if err := cfg.stopped(); err != nil {
		ix.Engine.Release()
		return nil, err
	}
	if ix.holder == nil {
		if err := ix.values.gather(vals, ix.n, &built.order, ix.workers); err != nil {
			ix.Engine.Release()
			return nil, err
		}
		ix.values.fetchedBy(ix.Engine.Body())
	}
	ix.describe(cfg)
	if err := cfg.stopped(); err != nil {
		ix.Release()
		return nil, err
	}
	if err := ix.run(cfg); err != nil {
		ix.Release()
		return nil, err
	}
	return ix, nil
}

// newIndex makes an index of n entries that has no engine yet.
func newIndex(n int, key KeyType, val *ValueType, cfg Config, codec *Codec) *Index {
	ix := &Index{n: n, workers: par.Workers(cfg.Workers), key: key, codec: codec, note: cfg.Note, scratch: par.NewPool[[]int](), walks: par.NewPool[windows]()}
	ix.values.ValueType, ix.values.sinks = val, par.NewPool[sink]()
	return ix
}

// Note returns the text that files of the index have.
func (ix *Index) Note() string { return ix.note }

// Over returns an index of n entries over an engine that holds values, too.
func Over(e Engine, n int, key KeyType, val *ValueType, cfg Config, codec *Codec) (*Index, error) {
	ix := newIndex(n, key, val, cfg, codec)
	ix.use(e)
	ix.describe(cfg)
	return ix, ix.run(cfg)
}

// use makes an engine the index's own.
func (ix *Index) use(e Engine) {
	ix.Engine = e
	if ix.holder, _ = e.(Holder); ix.holder == nil {
		ix.finder = e.(finder)
	}
}

// run decides where batches run.
func (ix *Index) run(cfg Config) (err error) {
	ix.stats.Device, ix.stats.Reason, err = ix.Engine.Attach(cfg)
	return err
}

// Span returns the entries [first, end) with lo <= key <= hi.
func (ix *Index) Span(lo, hi order.Probe) (first, end int) {
	first, _ = ix.Engine.Seek(lo)
	return first, ix.Engine.EndNear(first, hi)
}

// ValueType returns the type of the values.
func (ix *Index) ValueType() *ValueType { return ix.values.ValueType }

// Len returns the number of entries.
func (ix *Index) Len() int { return ix.n }

// Workers returns the most goroutines that a batch uses.
func (ix *Index) Workers() int { return ix.workers }

// Val returns the value of entry i.
func (ix *Index) Val(i int) Value {
	if ix.holder != nil {
		return ix.holder.Val(i)
	}
	return ix.values.at(i)
}

// Get returns the value of the first entry equal to key, and reports whether
// there is one.
func (ix *Index) Get(key order.Probe) (v Value, found bool) {
	if ix.holder != nil {
		return ix.holder.Get(key)
	}
	i, found := ix.Engine.Seek(key)
	if found && i < ix.n { // always, unless the index is being closed
		v = ix.values.at(i)
	}
	return v, found
}

// GetBatch sets vals[i] to the value of the first entry equal to keys[i], or to
// zero, and found[i], where found is not nil, to whether there is one. It
// returns the number of keys found.
func (ix *Index) GetBatch(keys order.Keys, vals Column, found []bool) (hits int) {
	if ix.holder != nil {
		return ix.holder.GetValues(keys, vals, found)
	}
	s := ix.values.sink(ix.n, vals, found)
	hits = ix.finder.FindEach(keys, s)
	ix.values.done(s)
	return hits
}

// GetPacked is GetBatch for strings that lie one behind the other: string i has
// the bytes of data from offsets[i] to offsets[i+1].
func (ix *Index) GetPacked(data []byte, offsets []int32, vals Column, found []bool) (hits int) {
	e, ok := ix.Engine.(packedFinder)
	if !ok {
		return ix.GetBatch(order.KeysAs(ix.key.Type, Unpacked(data, offsets)), vals, found)
	}
	s := ix.values.sink(ix.n, vals, found)
	hits = e.findEach(exec.StringBatch{Data: data, Offsets: offsets}, s)
	ix.values.done(s)
	return hits
}

// Unpacked returns strings that lie one behind the other, as GetPacked takes them,
// where they lie.
func Unpacked(data []byte, offsets []int32) []string {
	keys := make([]string, len(offsets)-1)
	for i := range keys {
		part := data[offsets[i]:offsets[i+1]]
		keys[i] = unsafe.String(unsafe.SliceData(part), len(part))
	}
	return keys
}

// CopyOut sets keys and vals to those of the entries from lo on.
func (ix *Index) CopyOut(lo int, keys order.Keys, vals Column) {
	if err := ix.tryCopyOut(lo, keys, vals); err != nil && CauseOf(err) != ErrClosed { // of a closed index the caller knows
		panic("pando: " + err.Error())
	}
}

// tryCopyOut is CopyOut. An error is that of a GPU that alone has the entries.
func (ix *Index) tryCopyOut(lo int, keys order.Keys, vals Column) error {
	if ix.holder != nil {
		return ix.holder.CopyEntries(lo, keys, vals)
	}
	ix.Engine.CopyKeys(lo, keys)
	ix.values.copyOut(vals, lo)
	return nil
}

// Prefix returns the entries [lo, hi) whose key begins with p. Keys must be
// strings.
func (ix *Index) Prefix(p string) (lo, hi int) { return ix.Engine.(Prefixed).Prefix(p) }

// AppendKey appends key i to dst. Keys must be strings.
func (ix *Index) AppendKey(dst []byte, i int) []byte {
	return ix.Engine.(Prefixed).AppendKey(dst, i)
}

// Release gives everything back.
func (ix *Index) Release() error {
	err := ix.Engine.Release()
	ix.values.release()
	return err
}
