package pandoserver

import (
	"iter"
	"slices"
	"strings"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/mutant"
)

// overlay is a source as commands of a transaction have changed it so far, of which the
// source knows nothing yet: it learns of all of it at once, in commit. Nobody else changes the source
// meanwhile. Keys and values are those of the commands, and not copied.
type overlay struct {
	base    Changer
	changed map[string]*change
	sorted  []string // the keys of changed, if none was added since
	grown   int      // by how many entries there are more than in the source
	tx      *transaction
}

// change is what has become of a key.
type change struct {
	val []byte
	has bool // it has a value now
	had bool // it has one in the source
}

// more returns by how many entries there are more than in the source, because of one key.
func (c *change) more() int {
	switch {
	case c.has && !c.had:
		return 1
	case !c.has && c.had:
		return -1
	}
	return 0
}

func newOverlay(base Changer, tx *transaction) *overlay {
	return &overlay{base: base, changed: map[string]*change{}, tx: tx}
}

// Steps of a transaction that are more than going over an entry.
const (
	stepsOfGet    = 4
	stepsOfCount  = 8  // of a search in the source
	stepsOfChange = 16 // of a key that no command has named
	stepBytes     = 64 // of a value that are copied in a step
)

// commit does all changes as one batch.
func (o *overlay) commit() error {
	ops := make([]pando.Op, 0, len(o.changed))
	keys, vals := make([]string, 0, len(o.changed)), make([][]byte, 0, len(o.changed))
	for key, c := range o.changed {
		switch {
		case c.has:
			ops = append(ops, pando.OpSet)
		case c.had:
			ops = append(ops, pando.OpDelete)
		default:
			continue
		}
		keys, vals = append(keys, key), append(vals, c.val)
		if mutant.On && mutant.Is("server: one batch") {
			if err := o.base.Apply(ops, keys, vals, nil); err != nil {
				return err
			}
			ops, keys, vals = ops[:0], keys[:0], vals[:0]
		}
	}
	if len(ops) == 0 {
		return nil
	}
	return o.base.Apply(ops, keys, vals, nil)
}

func (o *overlay) get(key string) (val []byte, had bool) {
	if c := o.changed[key]; c != nil {
		return c.val, c.has
	}
	return o.old(key)
}

func (o *overlay) old(key string) ([]byte, bool) {
	var val [1][]byte
	var found [1]bool
	o.base.GetBatch([]string{key}, val[:], found[:])
	o.tx.steps += stepsOfGet + len(val[0])/stepBytes
	return slices.Clip(val[0]), found[0]
}

// has reports whether a key has a value in the source.
func (o *overlay) had(key string) bool {
	var found [1]bool
	o.tx.steps += stepsOfGet
	return o.tx.of.srv.present(o.base, []string{key}, found[:]) > 0
}

func (o *overlay) HasBatch(keys []string, found []bool) (hits int) {
	for i, key := range keys {
		if c := o.changed[key]; c != nil {
			found[i] = c.has
		} else {
			found[i] = o.had(key)
		}
		if found[i] {
			hits++
		}
	}
	return hits
}

// put changes a key.
func (o *overlay) put(key string, val []byte, has bool) {
	c := o.changed[key]
	if c == nil {
		had := o.had(key)
		c = &change{has: had, had: had}
		o.changed[key] = c
		o.sorted = nil
	}
	o.grown -= c.more()
	o.tx.bytes += len(val) - len(c.val)
	c.val, c.has = val, has
	o.grown += c.more()
}

func (o *overlay) GetBatch(keys []string, vals [][]byte, found []bool) (hits int) {
	for i, k := range keys {
		if vals[i], found[i] = o.get(k); found[i] {
			hits++
		}
	}
	return hits
}

func (o *overlay) Apply(ops []pando.Op, keys []string, vals [][]byte, found []bool) error {
	var had [1]bool
	for i, op := range ops {
		var old []byte
		switch {
		case found != nil && vals != nil:
			old, had[0] = o.get(keys[i])
		case found != nil || op == pando.OpDelete:
			o.HasBatch(keys[i:i+1], had[:])
		}
		switch op {
		case pando.OpSet:
			o.put(keys[i], vals[i], true)
		case pando.OpDelete:
			if had[0] {
				o.put(keys[i], nil, false)
			}
		}
		if found != nil {
			found[i] = had[0]
			if vals != nil {
				vals[i] = old
			}
		}
	}
	return nil
}

func (o *overlay) Update(key string, f func(old []byte, had bool) (val []byte, keep bool)) error {
	old, had := o.get(key)
	val, keep := f(old, had)
	if keep || had {
		o.put(key, val, keep)
	}
	return nil
}

func (o *overlay) DeleteRange(b Bounds) (deleted int, err error) {
	var keys []string
	for k := range o.Scan(b) { // which ends where there are too many
		keys = append(keys, k)
		o.tx.steps += stepsOfChange
		o.tx.bytes += len(k) + overhead // that no command has brought
	}
	for _, k := range keys {
		o.put(k, nil, false)
	}
	return len(keys), nil
}

func (o *overlay) Len() int { return o.base.Len() + o.grown }

func (o *overlay) Count(b Bounds) int {
	n := o.base.Count(b)
	o.tx.steps += stepsOfCount + len(o.changed)
	for key, c := range o.changed {
		if b.contains(key) {
			n += c.more()
		}
	}
	return n
}

// order returns the keys that were changed, sorted.
func (o *overlay) order() []string {
	o.tx.steps += len(o.changed)
	if o.sorted == nil {
		o.tx.steps += 10 * len(o.changed)
		o.sorted = make([]string, 0, len(o.changed))
		for k := range o.changed {
			o.sorted = append(o.sorted, k)
		}
		slices.Sort(o.sorted)
	}
	return o.sorted
}

// At finds entry i between the keys that were changed: shift is by how much those so far
// have moved the entries behind them.
func (o *overlay) At(i int) (key string, val []byte, ok bool) {
	shift := 0
	for _, k := range o.order() {
		c := o.changed[k]
		if c.has == c.had {
			continue
		}
		o.tx.steps += 20
		at := o.base.Count(Bounds{Hi: k, To: Without}) + shift
		switch {
		case at > i:
			return o.entry(i - shift)
		case c.has && at == i:
			return k, c.val, true
		case c.has:
			shift++
		default:
			shift--
		}
	}
	return o.entry(i - shift)
}

// entry returns entry i of the source, with the value that it has here.
func (o *overlay) entry(i int) (key string, val []byte, ok bool) {
	key, val, ok = o.base.At(i)
	o.tx.steps += stepsOfCount + len(val)/stepBytes
	if c := o.changed[key]; ok && c != nil {
		val = c.val
	}
	return key, val, ok
}

// Scan merges the entries of the source with those that were changed.
func (o *overlay) Scan(b Bounds) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		mine := slices.Clone(o.order())
		mine = slices.DeleteFunc(mine, func(k string) bool { return !b.contains(k) })
		if b.Descending {
			slices.Reverse(mine)
		}
		// upTo yields the entries of mine before key, or all.
		upTo := func(key string, all bool) bool {
			for len(mine) > 0 {
				order := strings.Compare(mine[0], key)
				if b.Descending {
					order = -order
				}
				if !all && order >= 0 {
					return true
				}
				if c := o.changed[mine[0]]; c.has && !yield(mine[0], c.val) {
					return false
				}
				mine = mine[1:]
			}
			return true
		}
		for key, val := range o.base.Scan(b) {
			o.tx.steps += 1 + (len(key)+len(val))/stepBytes
			if o.tx.over() != nil { // nothing of it will be done
				return
			}
			if !upTo(key, false) {
				return
			}
			if len(mine) > 0 && mine[0] == key {
				c := o.changed[key]
				mine = mine[1:]
				if !c.has {
					continue
				}
				val = c.val
			}
			if !yield(key, val) {
				return
			}
		}
		upTo("", true)
	}
}

// watched is a source that is only read, of which a transaction counts the steps.
type watched struct {
	base Source
	tx   *transaction
}

// watchedNumbers is watched where keys are numbers.
type watchedNumbers struct {
	watched
	n Numbers
}

func watchedBy(src Source, tx *transaction) Source {
	w := watched{src, tx}
	if n, ok := src.(Numbers); ok {
		return watchedNumbers{w, n}
	}
	return w
}

func (w watched) Len() int { return w.base.Len() }

func (w watched) GetBatch(keys []string, vals [][]byte, found []bool) (hits int) {
	hits = w.base.GetBatch(keys, vals, found)
	for _, v := range vals {
		w.tx.steps += stepsOfGet + len(v)/stepBytes
	}
	return hits
}

func (w watched) HasBatch(keys []string, found []bool) int {
	w.tx.steps += stepsOfGet * len(keys)
	return w.tx.of.srv.present(w.base, keys, found)
}

func (w watched) Count(b Bounds) int {
	w.tx.steps += stepsOfCount
	return w.base.Count(b)
}

func (w watched) At(i int) (key string, val []byte, ok bool) {
	key, val, ok = w.base.At(i)
	w.tx.steps += stepsOfCount + len(val)/stepBytes
	return key, val, ok
}

func (w watched) Scan(b Bounds) iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for key, val := range w.base.Scan(b) {
			w.tx.steps += 1 + (len(key)+len(val))/stepBytes
			if w.tx.over() != nil || !yield(key, val) {
				return
			}
		}
	}
}

func (w watchedNumbers) Check(key string) error         { return w.n.Check(key) }
func (w watchedNumbers) Code(key string) uint64         { return w.n.Code(key) }
func (w watchedNumbers) From(code uint64) (from Bounds) { return w.n.From(code) }
