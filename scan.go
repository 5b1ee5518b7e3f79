package pando

import (
	"fmt"
	"iter"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// ScanOption says which entries Scan yields, and in which order. Options narrow
// each other: Scan yields the entries that are within all of them.
//
// A bound may be of another type than the keys: numbers are compared exactly,
// without rounding. So constants need no conversion, From(10) serves an index of
// uint64 keys as well, From(-1) is then from the first key on, and After(2.5) is
// from 3 on. Only a string cannot bound numbers, nor a number strings: then Scan
// panics.
type ScanOption struct {
	bound index.Bound
	limit int
	what  scanWhat
}

type scanWhat uint8

const (
	scanNothing scanWhat = iota
	scanBound
	scanLimit
	scanReverse
)

func bound[K Key](key K, b index.Bound) ScanOption {
	t := order.TypeOf[K]()
	b.Key, b.Type = order.Encode(t, key), t
	return ScanOption{what: scanBound, bound: b}
}

// From leaves out entries below key.
func From[K Key](key K) ScanOption { return bound(key, index.Bound{}) }

// After leaves out entries up to key.
func After[K Key](key K) ScanOption { return bound(key, index.Bound{Open: true}) }

// To leaves out entries above key.
func To[K Key](key K) ScanOption { return bound(key, index.Bound{Upper: true}) }

// Before leaves out entries from key on.
func Before[K Key](key K) ScanOption { return bound(key, index.Bound{Upper: true, Open: true}) }

// HasPrefix leaves out entries whose key does not start with p.
func HasPrefix[K ~string](p K) ScanOption { return bound(p, index.Bound{Prefix: true}) }

// Reverse makes Scan begin with the last entry and go down. Equal keys then come
// in reverse of the order they came in.
func Reverse() ScanOption { return ScanOption{what: scanReverse} }

// Limit makes Scan stop after n entries, with Reverse the last n of those that
// the other options leave. It panics if n is below 0.
func Limit(n int) ScanOption {
	if n < 0 {
		panic(fmt.Sprintf("pando: Limit(%d): a scan cannot stop before it begins", n))
	}
	return ScanOption{what: scanLimit, limit: n}
}

// scanOf gathers options for keys of a type.
func scanOf(key index.KeyType, opts []ScanOption) *index.Scan {
	s := new(index.Scan)
	for i := range opts {
		switch o := &opts[i]; o.what {
		case scanBound:
			if !s.Bounds.Add(key.Type, o.bound) {
				panic("pando: Scan: a string cannot be compared with a number; the keys of this index are " + key.Name)
			}
		case scanLimit:
			if !s.Limited || o.limit < s.Limit {
				s.Limit, s.Limited = o.limit, true
			}
		case scanReverse:
			s.Reverse = true
		}
	}
	return s
}

// Scan iterates over the entries that options leave, all if there are none, in
// key order or in reverse:
//
//	ix.Scan(pando.From(10), pando.Before(20))
//	ix.Scan(pando.Before(now), pando.Reverse(), pando.Limit(100)) // the last 100
//	ix.Scan(pando.HasPrefix("/books/"), pando.After(last), pando.Limit(50))
func (f *Frozen[K, V]) Scan(opts ...ScanOption) iter.Seq2[K, V] {
	return f.each(reach[K]{what: index.ReachScan, scan: scanOf(f.c.Key, opts)})
}
