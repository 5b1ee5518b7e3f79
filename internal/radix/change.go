package radix

import "sync/atomic"

// Set sets the value of a key, and returns the one it had.
func (t *Tree) Set(key string, val uint64) (old uint64, had bool, err error) {
	released(t, key)
	t.lockWrite()
	defer t.unlockWrite()
	if t.closed.Load() {
		return 0, false, ErrClosed
	}
	t.fetchTop(key)
	e := t.walk(key)
	old, had = e.value()
	if err := t.put(key, val, e); err != nil {
		return 0, false, err
	}
	acquired(t, key)
	return old, had, nil
}

// value returns the value at the end of a way.
func (e end) value() (val uint64, ok bool) {
	if e.leaf == 0 {
		return 0, false
	}
	return atomic.LoadUint64(&e.leaf.leaf().value), true
}

// Delete deletes a key, and returns the value it had. A limit of memory does not
// bind it.
func (t *Tree) Delete(key string) (old uint64, had bool, err error) {
	released(t, key)
	t.lockWrite()
	defer t.unlockWrite()
	if t.closed.Load() {
		return 0, false, ErrClosed
	}
	return t.delete(key)
}

// delete is Delete for the writer.
func (t *Tree) delete(key string) (old uint64, had bool, err error) {
	t.free = true
	defer func() { t.free = false }()
	e := t.walk(key)
	if old, had = e.value(); had {
		if err := t.cut(e.leaf); err != nil {
			return 0, false, err
		}
		acquired(t, key)
	}
	return old, had, nil
}

// Update sets the value of a key to what f makes of the old one, or deletes the
// key where f returns false. f is called without any lock held, and again if the
// key was changed meanwhile; gen is for Current.
func (t *Tree) Update(key string, f func(old uint64, had bool, gen uint64) (val uint64, keep bool)) (old uint64, had bool, err error) {
	for {
		gen := t.Gen()
		if t.closed.Load() {
			return 0, false, ErrClosed
		}
		old, had = t.Get(key)
		val, keep := f(old, had, gen)
		released(t, key)
		done, err := t.exchange(key, old, had, gen, val, keep)
		if done || err != nil {
			return old, had, err
		}
	}
}

// exchange sets the value of a key, or deletes it, if it is still what it was in a
// generation.
func (t *Tree) exchange(key string, old uint64, had bool, gen, val uint64, keep bool) (done bool, err error) {
	t.lockWrite()
	defer t.unlockWrite()
	if t.closed.Load() {
		return false, ErrClosed
	}
	e := t.walk(key)
	if now, there := e.value(); now != old || there != had || !t.Current(gen) {
		return false, nil
	}
	switch {
	case keep:
		err = t.put(key, val, e)
	case had:
		_, _, err = t.delete(key)
	}
	return err == nil, err
}

// Pop deletes the least entry, or the greatest, and returns it.
func (t *Tree) Pop(greatest bool) (key string, val uint64, ok bool, err error) {
	releasedAll(t)
	t.lockWrite()
	defer t.unlockWrite()
	if t.closed.Load() {
		return "", 0, false, ErrClosed
	}
	l := t.top.link
	for l.isInner() {
		if greatest {
			_, l = atOrBefore(l, 255)
		} else {
			_, l = atOrAfter(l, -1)
		}
	}
	if l == 0 {
		return "", 0, false, nil
	}
	key = string(append([]byte(nil), t.key(l)...))
	val, _, err = t.delete(key)
	return key, val, err == nil, err
}
