package pandoserver

import (
	"errors"
	"iter"

	"github.com/pando-index/pando"
)

// ErrDown is what errors are of a Source that cannot be asked now, since it is on machines of which too few can be reached.
// Its methods that return no error panic with one.
var ErrDown = errors.New("too few machines can be reached")

// Source is an ordered map from keys to values, both bytes, that a server puts on the
// wire. Tree, Store and Index make one of what this module has; a program may bring its own.
//
// Any method may be called from any goroutine at any time. Keys that are passed to a
// method are valid until it returns: whatever keeps one copies it. Values that it returns
// are not changed by anybody afterwards.
type Source interface {
	Len() int
	// GetBatch sets vals[i] to the value of keys[i], and found[i] to whether it has one.
	GetBatch(keys []string, vals [][]byte, found []bool) (hits int)
	// Count returns how many keys are within bounds.
	Count(b Bounds) int
	// At returns entry i in key order, and false if there is none.
	At(i int) (key string, val []byte, ok bool)
	// Scan iterates over the entries within bounds, in their order.
	Scan(b Bounds) iter.Seq2[string, []byte]
}

// Changer is a Source that can be changed.
type Changer interface {
	Source
	// Apply does what pando.Tree.Apply does: all of it, or nothing if it returns an
	// error. Values that are to be set are valid until it returns. Where all operations are
	// OpDelete, vals may be nil: then values are not reported.
	Apply(ops []pando.Op, keys []string, vals [][]byte, found []bool) error
	// Update does what pando.Tree.Update does. What f returns is valid until Update
	// returns.
	Update(key string, f func(old []byte, had bool) (val []byte, keep bool)) error
	// DeleteRange deletes the keys within bounds, and returns how many there were.
	DeleteRange(b Bounds) (deleted int, err error)
}

// Asker is a Source that can tell which keys are there without taking out their values: they may be long.
type Asker interface {
	// HasBatch sets found[i] to whether keys[i] is there, and returns how many are.
	HasBatch(keys []string, found []bool) (hits int)
}

// Sequential is a Changer that does batches one after the other, as a store does by its log. Others
// may do two at once, key by key: the server then keeps those apart whose keys belong together.
type Sequential interface{ Sequential() }

// Saver is a Source with a place to save to: SAVE and BGSAVE call it.
type Saver interface{ Checkpoint() error }

// Numbers is a Source whose keys are numbers, on the wire as decimals: their order is not
// that of their bytes. It is only read: New takes none that is a Changer, too.
type Numbers interface {
	Source
	// Check returns an error if key is not a number of the type of keys.
	Check(key string) error
	// Code returns a number below 1<<63 in the order of keys: of two keys, the
	// lower one's is not above the other's.
	Code(key string) uint64
	// From returns the bounds of all keys whose code is not below code.
	From(code uint64) Bounds
}

// Bounds is a range of keys, and a direction.
type Bounds struct {
	Lo, Hi     string
	From, To   Edge // what Lo and Hi mean
	Descending bool
}

// Edge is how a range ends.
type Edge uint8

// Edges of a range: there is no bound, or the key that is named is the last within the range,
// or the first outside.
const (
	Open Edge = iota
	With
	Without
)

// contains reports whether a key is within bounds, by the order of bytes.
func (b *Bounds) contains(key string) bool {
	switch {
	case b.From != Open && key < b.Lo, b.From == Without && key == b.Lo,
		b.To != Open && key > b.Hi, b.To == Without && key == b.Hi:
		return false
	}
	return true
}

// Prefix returns the bounds of all keys that begin with p, by the order of bytes.
func Prefix(p string) Bounds {
	b := Bounds{Lo: p, From: With}
	for n := len(p); n > 0; n-- {
		if c := p[n-1]; c < 0xff {
			b.Hi, b.To = p[:n-1]+string([]byte{c + 1}), Without
			break
		}
	}
	return b
}
