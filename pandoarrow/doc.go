// Package pandoarrow builds Pando indexes from Arrow arrays, frozen ones and trees, and
// probes them with Arrow arrays, without copying where the types allow. Ranges come out
// as record batches.
//
// # Basics
//
//	ix, err := pandoarrow.Freeze[int64, float64](ids, prices) // two columns
//	defer ix.Close()
//	found, hits, err := pandoarrow.Get(ix, asked, mem)        // a column, null where nothing was found
//	defer found.Release()
//	for batch, err := range pandoarrow.Range(ix, 10, 20, nil, mem) { … } // key and value
//
//	tree, err := pandoarrow.TreeOf[int64, float64](ids, prices) // to be changed
//	err = pandoarrow.SetBatch(tree, moreIDs, morePrices)
//	deleted, err := pandoarrow.DeleteBatch(tree, oldIDs)
//
// Columns are an arrow.Array or an *arrow.Chunked, sliced or not. A Go type
// matches the Arrow types whose values have the same representation in memory:
//
//	int8 … int64, uint8 … uint64, float32, float64   the Arrow type of that name
//	int32                                            also date32 and time32
//	int64 (and int)                                  also date64, time64, timestamp and duration
//	string                                           string, large_string, binary, large_binary, their views, fixed_size_binary
//	bool (values only)                               bool
//	int64 (and int), int32 up to 9 digits            decimals, stored without their point: of scale 2, 1.50 is 150
//
// Defined types count as their underlying types. An array encoded as a
// dictionary of one of these matches too, and is decoded, which makes a copy.
// Decimals are copied as well. An index does not know how many digits its numbers have
// behind the point, so keys that are decimals are looked up by way of Digits, which is
// told. Any other type results in ErrType.
//
// # What is copied
//
// An index keeps nothing of the arrays it was built from: they may be released
// at once. Numbers of an array in one piece are read in place. Get lets the
// index write numbers directly into the buffer of the array it returns.
// Strings are read in place if they are keys, and copied if they are values.
//
// # Nulls
//
// Freeze, TreeOf and SetBatch refuse columns that have nulls (ErrNull), because an index
// has no place for them; FreezeValid and SetBatchValid leave such rows out. A null key in a probe is
// never found, whatever its bytes are. The results of Get are null where the
// key was null or not found, those of Rank where the key was null.
//
// # Caveats
//
// Arrays that a function returns belong to the caller, who must release them.
// The flags that tell which keys were found (one byte per key) are in Go's
// memory, not the allocator's. An index knows Go types, not Arrow types: use
// GetAs, or a schema for Range, to get timestamps back as timestamps, and decimals as
// decimals.
package pandoarrow
