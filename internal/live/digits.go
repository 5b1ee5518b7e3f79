package live

import (
	"encoding/binary"
	"unsafe"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
)

// digits is how keys become the strings of a radix tree: those of numbers are their codes,
// the greatest byte first, so that strings are in the order of numbers. It is the number of
// bytes of a code, 0 where keys are strings.
type digits int

func digitsOf(t order.Type) digits { return digits(t.Bits() / 8) }

// text returns a key as a string.
func (d digits) text(p order.Probe) string {
	if d == 0 {
		return p.Text
	}
	return d.number(p.Code)
}

// number returns a code as a string.
func (d digits) number(code uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], code<<(64-8*uint(d)))
	return string(b[:d])
}

// probe returns a string as a key. That of a late reader of numbers may be of any length.
func (d digits) probe(s string) order.Probe {
	if d == 0 {
		return order.Probe{Text: s}
	}
	var b [8]byte
	copy(b[:d], s)
	return order.Probe{Code: binary.BigEndian.Uint64(b[:]) >> (64 - 8*uint(d))}
}

// texts returns keys as strings. Those of numbers share a block of memory.
func (d digits) texts(keys order.Keys) []string {
	if d == 0 {
		return keys.Strings()
	}
	n := keys.Len()
	out, block := make([]string, n), make([]byte, n*int(d))
	var codes [window]uint64
	for lo := 0; lo < n; lo += window {
		hi := min(lo+window, n)
		codesOf(codes[:hi-lo], keys.Slice(lo, hi))
		for i, c := range codes[:hi-lo] {
			at := block[(lo+i)*int(d):][:d]
			if d == 4 {
				binary.BigEndian.PutUint32(at, uint32(c))
			} else {
				binary.BigEndian.PutUint64(at, c)
			}
			out[lo+i] = unsafe.String(&at[0], len(at))
		}
	}
	return out
}

// shown returns a tree, or a snapshot of one, for a viewer.
func (d digits) shown(tree layout.Shown) any {
	if d == 0 {
		return tree
	}
	if living, ok := tree.(layout.Living); ok {
		return livingDigits{shownDigits{tree, d}, living}
	}
	return shownDigits{tree, d}
}

// shownDigits shows a radix tree with its strings as numbers.
type shownDigits struct {
	tree   layout.Shown
	digits digits
}

// livingDigits is one that changes.
type livingDigits struct {
	shownDigits
	layout.Living
}

func (s shownDigits) Look() layout.Look { return digitLook{s.tree.Look(), s.digits} }

type digitLook struct {
	layout.Look
	digits digits
}

func (k digitLook) Inside(level, i int) layout.Inside {
	in := k.Look.Inside(level, i)
	for j, p := range in.Keys {
		in.Keys[j] = k.digits.probe(p.Text)
	}
	return in
}

func (k digitLook) Way(key order.Probe) []layout.Visit {
	return k.Look.Way(order.Probe{Text: k.digits.text(key)})
}

func (k digitLook) Types() []layout.Type { return k.Look.(layout.Typed).Types() }
