package index

import (
	"encoding/binary"
	"unsafe"

	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
)

// digitMap implements keyMap for numbers in a radix tree: a key is its code, the
// greatest byte first, so that strings are in the order of numbers.
type digitMap struct {
	*textMap
	digits digits
}

// digits is the number of bytes of a code as a string.
type digits int

func digitsOf(t order.Type) digits { return digits(t.Bits() / 8) }

// text returns a code as a string.
func (d digits) text(p order.Probe) order.Probe {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], p.Code<<(64-8*uint(d)))
	return order.Probe{Text: string(b[:d])}
}

// code returns a string as a code. A late reader may have one of any length.
func (d digits) code(p order.Probe) order.Probe {
	var b [8]byte
	copy(b[:d], p.Text)
	return order.Probe{Code: binary.BigEndian.Uint64(b[:]) >> (64 - 8*uint(d))}
}

// texts returns keys as strings, which share a block of memory.
func (d digits) texts(keys order.Keys) order.Keys {
	n := keys.Len()
	out, block := make([]string, n), make([]byte, n*int(d))
	var codes [window]uint64
	for lo := 0; lo < n; lo += window {
		hi := min(lo+window, n)
		d.codes(codes[:hi-lo], keys.Slice(lo, hi))
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
	return order.KeysOf(out)
}

func (d digits) codes(dst []uint64, keys order.Keys) { codesOf(dst, keys) }

// treeLayout returns an error if a tree cannot be in a layout. Layouts other than
// those of trees are for saving, or freezing.
func treeLayout(key KeyType, cfg Config) error {
	switch {
	case cfg.Layout == "bplus" && key.Bits() == 0:
		return problem(CauseLayout, "a Tree of strings cannot be in layout %v; leave Layout out", cfg.Layout)
	case cfg.Layout == "radix" && cfg.DeviceOnly:
		return problem(CauseLayout, "a Tree on a GPU alone cannot be in layout %v; leave Layout out", cfg.Layout)
	}
	return nil
}

// inRadix reports whether the tree is a radix tree: that of strings is, and that of
// numbers where it is asked for.
func (m *Map) inRadix() bool { return m.key.Bits() == 0 || m.cfg.Layout == "radix" }

// loadDigits makes the tree of a map of numbers.
func loadDigits(m *Map, n int, span func(lo int, keys order.Keys, vals Column)) (keyMap, error) {
	d := digitsOf(m.key.Type)
	t, err := loadTexts(m, n, func(lo int, keys order.Keys, vals Column) {
		numbers := order.MakeKeys(m.key.Type, keys.Len())
		span(lo, numbers, vals)
		copy(keys.Strings(), d.texts(numbers).Strings())
	})
	if err != nil {
		return nil, err
	}
	return &digitMap{t.(*textMap), d}, nil
}

func (t *digitMap) get(key order.Probe) (uint64, bool) { return t.textMap.get(t.digits.text(key)) }

func (t *digitMap) set(key order.Probe, val uint64) (uint64, bool, error) {
	return t.textMap.set(t.digits.text(key), val)
}

func (t *digitMap) remove(key order.Probe) (uint64, bool, error) {
	return t.textMap.remove(t.digits.text(key))
}

func (t *digitMap) update(key order.Probe, f func(uint64, bool, uint64) (uint64, bool)) (uint64, bool, error) {
	return t.textMap.update(t.digits.text(key), f)
}

func (t *digitMap) pop(greatest bool) (order.Probe, uint64, bool, error) {
	k, v, ok, err := t.textMap.pop(greatest)
	return t.digits.code(k), v, ok, err
}

func (t *digitMap) deleteRange(lo, hi order.Probe, gone func(uint64)) (int, error) {
	return t.textMap.deleteRange(t.digits.text(lo), t.digits.text(hi), gone)
}

func (t *digitMap) rank(key order.Probe, after bool) int {
	return t.textMap.rank(t.digits.text(key), after)
}

func (t *digitMap) rankBatch(keys order.Keys, after bool, ranks []int) {
	t.textMap.rankBatch(t.digits.texts(keys), after, ranks)
}

func (t *digitMap) at(i int) (order.Probe, uint64, bool) {
	k, v, ok := t.textMap.at(i)
	return t.digits.code(k), v, ok
}

func (t *digitMap) getBatch(keys order.Keys, vals []byte, size int, found []bool, use func(lo, hi int)) (hits int) {
	return t.textMap.getBatch(t.digits.texts(keys), vals, size, found, use)
}

func (t *digitMap) apply(b *changes) error {
	c := *b
	c.keys = t.digits.texts(b.keys)
	return t.textMap.apply(&c)
}

func (t *digitMap) shown() any { return livingDigits{shownDigits{t.Tree, t.digits}, t.Tree} }

func (e *digitMoment) shown() any {
	return shownDigits{e.moment.(interface{ shown() any }).shown().(layout.Shown), e.digits}
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
		in.Keys[j] = k.digits.code(p)
	}
	return in
}

func (k digitLook) Way(key order.Probe) []layout.Visit { return k.Look.Way(k.digits.text(key)) }

func (k digitLook) Types() []layout.Type { return k.Look.(layout.Typed).Types() }

type digitCursor struct {
	keyCursor
	digits digits
}

func (t *digitMap) cursor() keyCursor { return digitCursor{t.textMap.cursor(), t.digits} }

func (c digitCursor) next() (order.Probe, uint64, bool) {
	k, v, ok := c.keyCursor.next()
	return c.digits.code(k), v, ok
}

func (c digitCursor) move(from Edge, down bool) bool {
	from.Key = c.digits.text(from.Key)
	return c.keyCursor.move(from, down)
}

// digitMoment is a map of numbers as it was at one moment.
type digitMoment struct {
	moment
	digits digits
}

func (t *digitMap) freeze() (moment, error) {
	m, err := t.textMap.freeze()
	if err != nil {
		return nil, err
	}
	return &digitMoment{m, t.digits}, nil
}

func (e *digitMoment) Seek(key order.Probe) (rank int, equal bool) {
	return e.moment.Seek(e.digits.text(key))
}

func (e *digitMoment) single(key order.Probe) (uint64, bool) {
	return e.moment.(singleMoment).single(e.digits.text(key))
}

func (e *digitMoment) After(key order.Probe) int { return e.moment.After(e.digits.text(key)) }

func (e *digitMoment) endNear(_ int, key order.Probe) int { return e.After(key) }

func (e *digitMoment) Key(i int) order.Probe { return e.digits.code(e.moment.Key(i)) }

func (e *digitMoment) CopyKeys(lo int, keys order.Keys) { e.entries(lo, keys.Len(), keys, nil) }

func (e *digitMoment) entries(lo, n int, keys order.Keys, vals []uint64) error {
	if keys.Len() == 0 {
		return e.moment.entries(lo, n, keys, vals)
	}
	texts := make([]string, n)
	if err := e.moment.entries(lo, n, order.KeysOf(texts), vals); err != nil {
		return err
	}
	codes := make([]uint64, n)
	for i, s := range texts {
		codes[i] = e.digits.code(order.Probe{Text: s}).Code
	}
	setKeys(keys, codes)
	return nil
}

func (e *digitMoment) copyKeyRuns(first, offsets []int, from, to int, keys order.Keys) {
	for i := from; i < to; i++ {
		if lo, hi := offsets[i], offsets[i+1]; lo < hi {
			e.CopyKeys(first[i], keys.Slice(lo, hi))
		}
	}
}

func (e *digitMoment) Rank(keys order.Keys, ranks []int) { e.moment.Rank(e.digits.texts(keys), ranks) }

func (e *digitMoment) RankAfter(keys order.Keys, ranks []int) {
	e.moment.RankAfter(e.digits.texts(keys), ranks)
}

func (e *digitMoment) FindEach(keys order.Keys, sink exec.Sink) (hits int) {
	return e.moment.FindEach(e.digits.texts(keys), sink)
}

func (e *digitMoment) lookup(keys order.Keys, vals []uint64, found []bool) (hits int) {
	return e.moment.lookup(e.digits.texts(keys), vals, found)
}
