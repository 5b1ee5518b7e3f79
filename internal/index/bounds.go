package index

import (
	"github.com/pando-index/pando/internal/order"
)

// Bounds are the keys between which a scan runs. Those of numbers are codes,
// both included; an open bound has become the next code.
type Bounds struct {
	lower, upper       order.Probe
	hasLower, hasUpper bool
	lowerOpen          bool // of strings
	upperOpen          bool
	none               bool // no key can be between them
}

// Bound is one end of a scan: a key of any type of the index's family.
type Bound struct {
	Key    order.Probe
	Type   order.Type
	Upper  bool
	Open   bool // the key itself is outside
	Prefix bool // all keys within the bounds begin with this key
}

// Add narrows bounds to the keys on the right side of another bound, for keys
// of type t. It returns false if a string is compared with a number, or a
// number has a prefix.
func (b *Bounds) Add(t order.Type, x Bound) bool {
	text := t.Bits() == 0
	if text != (x.Type.Bits() == 0) || x.Prefix && !text {
		return false
	}
	switch {
	case x.Prefix:
		b.addString(Bound{Key: x.Key})
		if end, ok := order.AfterPrefix(x.Key.Text); ok {
			b.addString(Bound{Key: order.Probe{Text: end}, Upper: true, Open: true})
		}
	case text:
		b.addString(x)
	default:
		b.addNumber(t, x)
	}
	return true
}

func (b *Bounds) addString(x Bound) {
	s := x.Key.Text
	switch {
	case x.Upper && (!b.hasUpper || s < b.upper.Text || s == b.upper.Text && x.Open):
		b.hasUpper, b.upper, b.upperOpen = true, x.Key, x.Open
	case !x.Upper && (!b.hasLower || s > b.lower.Text || s == b.lower.Text && x.Open):
		b.hasLower, b.lower, b.lowerOpen = true, x.Key, x.Open
	}
}

func (b *Bounds) addNumber(t order.Type, x Bound) {
	if x.Upper {
		code, ok := order.Greatest(t, x.Key, x.Type, x.Open)
		if b.none = b.none || !ok; !b.hasUpper || code < b.upper.Code {
			b.hasUpper, b.upper = true, order.Probe{Code: code}
		}
		return
	}
	code, ok := order.Least(t, x.Key, x.Type, x.Open)
	if b.none = b.none || !ok; !b.hasLower || code > b.lower.Code {
		b.hasLower, b.lower = true, order.Probe{Code: code}
	}
}

// Within returns the entries [first, end) between bounds.
func (ix *Index) Within(b *Bounds) (first, end int) {
	if b.none {
		return 0, 0
	}
	if b.hasLower && b.lowerOpen {
		first = ix.Engine.After(b.lower)
	} else if b.hasLower {
		first, _ = ix.Engine.Seek(b.lower)
	}
	switch {
	case !b.hasUpper:
		end = ix.n
	case b.upperOpen:
		end, _ = ix.Engine.Seek(b.upper)
	case b.hasLower:
		end = ix.Engine.EndNear(first, b.upper)
	default:
		end = ix.Engine.After(b.upper)
	}
	return first, max(first, end)
}

// Edge is where entries begin, or end: at a key, or right behind it where it is
// open; None is no edge at all.
type Edge struct {
	Key        order.Probe
	Open, None bool
}

// NoEdge leaves out nothing.
var NoEdge = Edge{None: true}

// Beyond reports whether a key is on the other side of an edge, upwards or down.
func (t KeyType) Beyond(key order.Probe, e Edge, down bool) bool {
	if e.None {
		return false
	}
	c := t.Compare(key, e.Key)
	if down {
		c = -c
	}
	return c > 0 || c == 0 && e.Open
}

// Edges returns bounds of keys of type t as edges, and false if there can be no key
// between them.
func (b *Bounds) Edges(t KeyType) (lo, hi Edge, some bool) {
	lo, hi = NoEdge, NoEdge
	if b.hasLower {
		lo = Edge{Key: b.lower, Open: b.lowerOpen}
	}
	if b.hasUpper {
		hi = Edge{Key: b.upper, Open: b.upperOpen}
	}
	return lo, hi, !b.none && (lo.None || !t.Beyond(lo.Key, hi, false))
}
