package live

import (
	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/stall"
)

// mostRuns is the number of times that the function of an update runs before other
// writers of its key are held off.
const mostRuns = 8

// Update sets the value of a key to the result of f for the old one, or deletes the
// key. f runs again only if another goroutine has changed this key meanwhile. Nothing
// is locked while it runs, so it may use the map.
func (m *Map) Update(key order.Probe, f func(old index.Value, had bool) (index.Value, bool)) error {
	m.awaitKey(key)
	u := updating{m: m, key: key, f: f}
	defer u.end()
	was, had, err := m.tree.Update(key, u.decide)
	if err == nil {
		err = u.err // then the tree is as it was
	}
	if err != nil {
		return m.failed(err)
	}
	u.put = false // its value is in the tree
	if had {
		m.oneGone(was)
	}
	return nil
}

// updating is an update on its way.
type updating struct {
	m    *Map
	key  order.Probe
	f    func(old index.Value, had bool) (index.Value, bool)
	runs int   // of f
	held *held // nil while no writer is held off

	patience epoch.Patience // where values lie apart

	// The last arguments of f. A value that lies apart is known by itself, since its word
	// may have been used again; but not before generation gen, in which it was read, is over.
	old  index.Value
	had  bool
	word uint64
	gen  uint64

	// The results of f for these.
	val  uint64
	keep bool
	put  bool  // val is the word of a value that is not in the tree
	err  error // there is no memory for the value
}

// decide returns the new state of a key that has a value, or none, in a generation.
// The tree asks again whenever it has to begin anew; f is only asked if the value is
// another.
func (u *updating) decide(old uint64, had bool, gen uint64) (val uint64, keep bool) {
	m := u.m
	if m.apart != nil {
		u.patience.Begin(m.clock) // what the tree reads next is read in a generation that is held
		if had && u.still(old) {
			u.gen = gen
			return u.result(old, had)
		}
	}
	var v index.Value
	if had {
		v = m.value(old)
		stall.At("live: value of an update read")
	}
	// A missing key has no value, and a tree need not try again.
	if m.apart != nil && (had || mutant.On && mutant.Is("live: box read")) && !m.gens.Current(gen) {
		return old, had // it may be another's: the tree tries again
	}
	if u.runs == 0 || !u.told(v, had) {
		u.patience.Done() // f may take its time
		u.ask(v, had)
	}
	u.word, u.gen = old, gen
	return u.result(old, had)
}

// result returns the new state of a key that has a value, or none, after f was asked.
func (u *updating) result(old uint64, had bool) (val uint64, keep bool) {
	if u.err != nil {
		return old, had
	}
	return u.val, u.keep
}

// still reports whether f was told the value of a word last, without a look at it: no memory that
// the word stood for then was used again.
func (u *updating) still(word uint64) bool {
	return u.had && u.word == word && (u.m.gens.Current(u.gen) || mutant.On && mutant.Is("live: still in its generation"))
}

// ask asks f for the new value.
func (u *updating) ask(v index.Value, had bool) {
	m := u.m
	if u.forget(); u.runs == mostRuns {
		u.hold()
	}
	u.runs++
	u.old, u.had = v, had
	if had && m.apart != nil {
		v = m.apart.lent(v)
	}
	if v, u.keep = u.f(v, had); u.keep {
		if u.val, u.err = m.bits(v); u.err != nil {
			u.err = m.again(u.err, func() (err error) {
				u.val, err = m.bits(v)
				return err
			})
		}
		u.put = u.err == nil && m.apart != nil
	}
}

// told reports whether f was told this value last.
func (u *updating) told(v index.Value, had bool) bool {
	if mutant.On && mutant.Is("live: value told") {
		return true
	}
	if had != u.had || !had {
		return had == u.had
	}
	if u.m.apart == nil {
		return v.Bits == u.old.Bits
	}
	return u.m.apart.same(v, u.old)
}

// hold holds other writers of the key off.
func (u *updating) hold() {
	u.held = u.m.holds.take(u.key, func(k order.Probe) bool { return u.m.compare(k, u.key) == 0 })
}

// forget takes back a value that did not come into the tree.
func (u *updating) forget() {
	if u.put {
		u.m.unused(u.val)
	}
	u.val, u.put, u.err = 0, false, nil
}

// end ends the update, also where f panics.
func (u *updating) end() {
	u.forget()
	u.patience.Done()
	if u.held != nil {
		u.m.holds.drop(u.held)
	}
}

// awaitKey waits for an update that holds a key.
func (m *Map) awaitKey(key order.Probe) {
	if m.holds.n.Load() != 0 {
		m.awaitRange(key, key)
	}
}

// awaitRange waits for updates that hold keys from lo to hi.
func (m *Map) awaitRange(lo, hi order.Probe) {
	if m.holds.n.Load() != 0 {
		m.holds.wait(func(k order.Probe) bool { return m.compare(lo, k) <= 0 && m.compare(k, hi) <= 0 }, true)
	}
}

// awaitAny waits for updates that hold any key: a change of the first entry or the last
// may be of any. The function of an update may make one.
func (m *Map) awaitAny() {
	if m.holds.n.Load() != 0 {
		m.holds.wait(func(order.Probe) bool { return true }, false)
	}
}

// awaitKeys waits for updates that hold one of some keys.
func (m *Map) awaitKeys(keys order.Keys) {
	if m.holds.n.Load() != 0 {
		m.holds.wait(func(k order.Probe) bool { return m.among(keys, k) }, true)
	}
}

// among reports whether a key is one of some keys.
func (m *Map) among(keys order.Keys, key order.Probe) bool {
	if m.key.Bits() == 0 {
		for _, k := range keys.Strings() {
			if k == key.Text {
				return true
			}
		}
		return false
	}
	var codes [window]uint64
	for lo := 0; lo < keys.Len(); lo += window {
		hi := min(lo+window, keys.Len())
		codesOf(codes[:hi-lo], keys.Slice(lo, hi))
		for _, c := range codes[:hi-lo] {
			if c == key.Code {
				return true
			}
		}
	}
	return false
}
