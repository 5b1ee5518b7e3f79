// Package pando is an ordered in-memory index that runs on every lane, core
// and GPU a machine has.
//
// # Basics
//
// Freeze takes keys and values, in any order, and returns an immutable index:
//
//	ix, err := pando.Freeze(keys, vals)     // []uint64, []uint64, say
//	v, ok := ix.Get(42)                     // one key
//	hits := ix.GetBatch(asked, out, found)  // thousands of keys, ten times faster per key
//
// It knows the order of its keys: Rank counts the keys below a key and At goes
// back from a rank to an entry; Floor and Ceil find neighbours; Range and Count
// take intervals, both ends included; RangeBatch answers many intervals at
// once. String keys have Prefix and PrefixCount, too.
//
//	for k, v := range ix.Range(10, 20) { … }
//	for k, v := range ix.Scan(pando.After(10), pando.Reverse(), pando.Limit(5)) { … }
//
// A Cursor goes through an index entry by entry, in both directions. Merge,
// Intersect and Difference take two indexes. Package tuple makes ordered string
// keys of several values.
//
// Tree is an ordered map that any number of goroutines read and change at once;
// Index is the interface that Tree and Frozen have in common.
//
// Any number of goroutines may read at the same time. Batches use all cores
// by themselves, and a GPU where there is one and it pays; On says otherwise.
// The driver of GPUs is linked by import _ "github.com/pando-index/pando/cuda" alone.
//
// # Trees
//
// A Tree is an ordered map that changes: one value a key, any method from any
// goroutine at any time, and everything that a Frozen has for readers.
//
//	t, err := pando.NewTree[uint64, uint64]()
//	err = t.Set(42, 7)
//	err = t.SetBatch(keys, vals)            // many at once
//	s := t.Snapshot()                       // this moment, as a Frozen
//
// Keys may be strings, too. Reads never wait for writes. Snapshot takes microseconds, whatever the size;
// Freeze makes a compact copy while writers go on.
//
// # Values of whole ranges
//
// Where values are numbers, Aggregate sums them up, Histogram counts them, Select
// picks entries by them, and Transform changes those of a Tree: at the speed of
// memory, on all cores, with the same bits as the result everywhere.
//
//	s := pando.Aggregate(ix, 10, 20)        // s.Count, s.Sum, s.Min, s.Max, s.Mean
//	n, err := pando.Transform(t, 10, 20, pando.Multiply[uint64](2))
//
// # Keys and values
//
// A key is any integer, float or string type. Every value of it is an
// ordinary key: 0, the maximum, the empty string, NaN. Order and equality are
// those of cmp.Compare, so NaN equals NaN and comes first, and -0 equals 0
// (and comes back as 0). Equal keys are all kept, in the order they came in:
// Get returns the first, Range(k, k) all, Count(k, k) how many.
//
// Values may be of any type. Those of 4 or 8 bytes without pointers live in
// the index itself, off the Go heap, where the garbage collector never walks.
// Larger ones without pointers, strings and slices of bytes lie off the heap beside
// it, and copies are handed out (nil comes back as an empty slice); but strings of
// a Frozen that was built are in memory that the collector does not walk, and are
// handed out from there. GetAppend and its like append strings and bytes to a
// slice of the caller's. All other values are Go's, and the collector sees them.
// Batches are fastest where key and value are equally wide, 4 or 8 bytes: then
// both are in one cache line.
//
// # Files
//
// Save writes an index to a file, whole or not at all. Open maps such a file and
// is ready at once, whatever its size; Verify, or the option Verified, looks at
// every byte. Read, ReadAt, ReadBytes and ReadFS take sources that are not files
// of the operating system. Values with pointers that are neither strings nor
// bytes, and do not marshal themselves, need a codec: see Values.
//
//	err := ix.Save("prices.pando")
//	ix, err := pando.Open[int64, float64]("prices.pando")
//
// # Caveats
//
// The index is off the Go heap, so heap profiles do not show it: Stats does.
// Close gives the memory back at once; a forgotten index is freed by the
// garbage collector, for which it counts as if it were on the heap: GOGC and
// the memory limit (debug.SetMemoryLimit) hold for it, too. Using an index after
// Close panics. Results are copies and stay good.
//
// A batch needs result slices at least as long as its keys, and panics
// otherwise. Conditions outside the program (a memory limit, a device that is
// not there) are returned as errors; see the Err variables.
//
// An index of strings returns copies of its keys: to iterate over it allocates.
// Keys that come one after the other may share memory, 1 KiB at most: strings.Clone
// those that are kept for long where most are not.
package pando
