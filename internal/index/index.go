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
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
	"github.com/pando-index/pando/internal/partial"
)

// Config says how an index is built and where it runs.
type Config struct {
	Device     Device
	DeviceOnly bool          // a map on a GPU has no copy in host memory
	Workers    int           // most goroutines; 0 for one per core
	Limit      int64         // most bytes to take; 0 for no limit
	Pages      arena.Pages   // which memory goes on huge pages
	Layout     layout.Kind   // layout.Auto for the best
	Layouts    *Layouts      // those to choose from; nil for the usual ones
	Room       int64         // most bytes of device memory; 0 for all that is free
	Response   time.Duration // how long a query may wait for others; 0 for no bound
	Verified   bool          // a file is checked whole before it is opened
	Note       string        // text about the index, for files

	Context Stopper // stops a build; nil for none
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

// engine answers for one family of key types. Entries are told apart by their
// number in key order, their rank.
type engine interface {
	Seek(key order.Probe) (rank int, equal bool) // entries below key; whether the one there has it
	After(key order.Probe) int                   // entries up to key
	endNear(rank int, key order.Probe) int       // the first entry from rank on that is above key, likely near
	Key(i int) order.Probe
	CopyKeys(lo int, keys order.Keys) // sets keys to those of the entries from lo on
	// copyKeyRuns does the same for runs [from, to): run i begins with entry
	// first[i] and goes to keys offsets[i] to offsets[i+1].
	copyKeyRuns(first, offsets []int, from, to int, keys order.Keys)
	Rank(keys order.Keys, ranks []int)
	RankAfter(keys order.Keys, ranks []int)
	FindEach(keys order.Keys, sink exec.Sink) (hits int)

	body() layout.Body
	attach(Config) (Device, string, error) // where batches run, and why
	report(*Stats)                         // figures that change while an index is in use
	release() error
}

// keeper is an engine whose layout holds the values, too.
type keeper interface {
	layout.Valued
	// GetValues looks keys up: vals is the memory of the results. found may be
	// nil.
	GetValues(keys order.Keys, vals []byte, found []bool) (hits int)
	// CopyRuns copies runs of entries where that is not the CPU's work: run i
	// begins with entry first[i] and goes to offsets[i] and on. onCPU copies
	// entries [lo, hi) of the result. It returns false if all of it is the CPU's
	// work.
	CopyRuns(first, offsets []int, keys order.Keys, vals []byte, onCPU func(lo, hi int)) bool
	// copyRuns copies runs [from, to) on the CPU.
	copyRuns(first, offsets []int, from, to int, keys order.Keys, vals []byte)
}

// Index is keys and their values, to be read: all that an index holds until it
// is closed.
type Index struct {
	engine
	values  Values
	keeper  keeper // nil where values are kept elsewhere
	n       int
	workers int
	key     KeyType
	codec   *Codec
	note    string // for files
	stats   Stats
	scratch par.Pool[[]int]
	walks   par.Pool[Walk]
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
	if errors.Is(err, layout.ErrStopped) || errors.Is(err, partial.ErrStopped) {
		err = cfg.stopped()
	}
	if err != nil {
		return nil, err
	}
	defer built.order.release()
	ix.use(built.engine)
	if err := cfg.stopped(); err != nil {
		ix.release()
		return nil, err
	}
	if ix.keeper == nil {
		if err := ix.values.gather(vals, ix.n, &built.order, ix.workers); err != nil {
			ix.release()
			return nil, err
		}
		ix.values.fetchedBy(ix.body())
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
	ix := &Index{n: n, workers: par.Workers(cfg.Workers), key: key, codec: codec, note: cfg.Note, scratch: par.NewPool[[]int](), walks: par.NewPool[Walk]()}
	ix.values.ValueType, ix.values.sinks = val, par.NewPool[sink]()
	return ix
}

// Note returns the text that files of the index have.
func (ix *Index) Note() string { return ix.note }

// use makes an engine the index's own.
func (ix *Index) use(e engine) {
	ix.engine = e
	if ix.values.kept > 0 {
		ix.keeper, _ = e.(keeper)
	}
}

// run decides where batches run.
func (ix *Index) run(cfg Config) (err error) {
	ix.stats.Device, ix.stats.Reason, err = ix.attach(cfg)
	return err
}

// Span returns the entries [first, end) with lo <= key <= hi.
func (ix *Index) Span(lo, hi order.Probe) (first, end int) {
	first, _ = ix.Seek(lo)
	return first, ix.endNear(first, hi)
}

// ValueType returns the type of the values.
func (ix *Index) ValueType() *ValueType { return ix.values.ValueType }

// Len returns the number of entries.
func (ix *Index) Len() int { return ix.n }

// Workers returns the most goroutines that a batch uses.
func (ix *Index) Workers() int { return ix.workers }

// Val returns the value of entry i.
func (ix *Index) Val(i int) Value {
	if ix.keeper != nil {
		return ix.values.load(ix.keeper.Val(i))
	}
	return ix.values.at(i)
}

// Get returns the value of the first entry equal to key, and reports whether
// there is one.
func (ix *Index) Get(key order.Probe) (v Value, found bool) {
	if f := ix.values.moment; f != nil {
		if v, found, known := f.get(key); known {
			return v, found
		}
	}
	i, found := ix.Seek(key)
	if found && i < ix.n { // always, unless the index is being closed
		v = ix.Val(i)
	}
	return v, found
}

// GetBatch sets vals[i] to the value of the first entry equal to keys[i], or to
// zero, and found[i], where found is not nil, to whether there is one. It
// returns the number of keys found.
func (ix *Index) GetBatch(keys order.Keys, vals Column, found []bool) (hits int) {
	if ix.keeper != nil {
		return ix.keeper.GetValues(keys, ix.values.bytes(vals), found)
	}
	if ix.values.moment != nil {
		return ix.values.moment.getBatch(keys, vals, found)
	}
	s := ix.values.sink(ix.n, vals, found)
	hits = ix.FindEach(keys, s)
	ix.values.done(s)
	return hits
}

// GetPacked is GetBatch for strings that lie one behind the other: string i has
// the bytes of data from offsets[i] to offsets[i+1].
func (ix *Index) GetPacked(data []byte, offsets []int32, vals Column, found []bool) (hits int) {
	e, ok := ix.engine.(*texts)
	if !ok { // a snapshot's
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
	if ix.values.moment != nil {
		mustSolo(ix.values.moment.copyEntries(lo, keys, vals))
		return
	}
	ix.CopyKeys(lo, keys)
	if ix.keeper != nil {
		ix.keeper.CopyVals(ix.values.bytes(vals), lo)
		return
	}
	ix.values.copyOut(vals, lo)
}

// prefixed is an engine for strings.
type prefixed interface {
	prefix(p string) (lo, hi int)
	appendKey(dst []byte, i int) []byte
}

// Prefix returns the entries [lo, hi) whose key begins with p. Keys must be
// strings.
func (ix *Index) Prefix(p string) (lo, hi int) { return ix.engine.(prefixed).prefix(p) }

// AppendKey appends key i to dst. Keys must be strings.
func (ix *Index) AppendKey(dst []byte, i int) []byte {
	return ix.engine.(prefixed).appendKey(dst, i)
}

// Release gives everything back.
func (ix *Index) Release() error {
	err := ix.release()
	ix.values.release()
	return err
}
