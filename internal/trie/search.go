package trie

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/pando-index/pando/internal/shortcut"
)

// visit is a search of a trie under way.
type visit struct {
	key   string
	at    link
	depth int64 // of the last node; the next must be deeper, even in a damaged file
	i     int32
	stage int8
	short bool           // it has begun at a shortcut
	miss  bool           // no link leads on: the leaf is another key's
	slot  *link          // of a wide node, once it is known
	asked *shortcut.Asks // takes the lines that the next step will read; nil if no other search is under way
}

// step goes through an inner node. Where no link leads on, it goes to the first key
// below, to be compared. A wide node takes two steps, unless the search is alone: the
// second reads the link that the first has asked for.
func (t *trie) step(v *visit) {
	h := t.at(v.at)
	d := h.depth
	next := link(0)
	if int64(d) > v.depth {
		if kind := v.at.kind(); uint(d) < uint(len(v.key)) {
			switch {
			case kind != trieWide:
				next = h.find(kind, v.key[d])
			case v.asked == nil:
				next = *t.linkAt(v.at, t.slotOf(v.at, v.key))
			case v.slot == nil:
				v.slot = t.linkAt(v.at, t.slotOf(v.at, v.key))
				v.asked.Add(unsafe.Pointer(v.slot), 1)
				return
			default:
				next, v.slot = *v.slot, nil
			}
		} else if uint(d) == uint(len(v.key)) && h.own != 0 {
			next = leafBit | link(h.first)
		}
	}
	v.depth = int64(d)
	if next.kind() == nothing {
		next, v.miss = leafBit|link(h.first), true
	}
	v.at = next
	if next.isLeaf() {
		t.askKey(v)
		return
	}
	t.ask(v.asked, next, v.key, uint(d)+1)
}

// ask adds the lines that a step through an inner node will read. depth is where the
// node most likely tells keys apart.
func (t *trie) ask(a *shortcut.Asks, l link, key string, depth uint) {
	at := unsafe.Pointer(t.at(l))
	switch kind := l.kind(); kind {
	case trie256:
		a.Add(at, 1)
		if depth < uint(len(key)) {
			a.Add(unsafe.Add(at, 64+4*int(key[depth])), 1)
		}
	case trie23:
		a.Add(at, 2)
	case trie48:
		a.Add(at, 4)
	default:
		a.Add(at, 1)
	}
}

// askKey adds the lines that the next look at a leaf will read.
func (t *trie) askKey(v *visit) {
	if rank := int(v.at &^ leafBit); rank < t.n {
		at, lines := t.keys.lies(rank, int(v.stage))
		if v.asked.Add(at, lines); v.stage == 0 && t.vals != nil && !v.miss {
			v.asked.Add(unsafe.Add(t.vals, rank*t.valSize), 1)
		}
	}
	v.stage++
}

// search sets ranks[i] to the first entry that is keys[i], or to -1; or to the number
// of entries below, where below is true. Many are under way at a time: all take a step,
// then the lines of their next steps are prefetched.
func (t *trie) search(keys []string, ranks []int, below bool) {
	for len(keys) > 0 {
		n := min(len(keys), bucketKeys)
		t.searchBucket(keys[:n], ranks[:n], below)
		keys, ranks = keys[n:], ranks[n:]
	}
	runtime.KeepAlive(t)
}

var buckets = sync.Pool{New: func() any { return &shortcut.Bucket[link]{Asked: shortcut.Room()} }}

var visits = sync.Pool{New: func() any { return new([bucketKeys]visit) }}

func (t *trie) searchBucket(keys []string, ranks []int, below bool) {
	e, all := buckets.Get().(*shortcut.Bucket[link]), visits.Get().(*[bucketKeys]visit)
	live := all[:len(keys)]
	e.Find(t.short, keys, func(l link, i int) {
		if l.isInner() {
			t.ask(&e.Asked, l, keys[i], uint(t.short.Depth))
		}
	})
	for i := range live {
		live[i].asked = &e.Asked
		t.enter(&live[i], keys[i], i, e.Links[i])
	}
	for stages := int8(t.keys.stages()); len(live) > 0; {
		e.Asked.Fetch()
		n := 0 // how many go on
		for i := range live {
			v := &live[i]
			switch {
			case v.at.isInner():
				t.step(v)
			case v.stage < stages && (below || v.short || !v.miss):
				t.askKey(v)
			case t.answer(v, ranks, below):
				continue
			default:
				t.enter(v, v.key, int(v.i), 0)
			}
			if n < i {
				live[n] = *v
			}
			n++
		}
		live = live[:n]
	}
	clear(all[:len(keys)]) // the caller's keys are not a pool's to keep
	visits.Put(all)
	buckets.Put(e)
}

// enter begins a search, at a shortcut unless that is 0.
func (t *trie) enter(v *visit, key string, i int, at link) {
	*v = visit{key: key, at: at, depth: -1, i: int32(i), short: at != 0, asked: v.asked}
	if at == 0 {
		v.at = t.root
	}
	switch {
	case v.at.isLeaf():
		t.askKey(v)
	case at == 0 && v.at.kind() == trieWide && v.asked != nil: // the root is at hand
		t.step(v)
	}
}

// answer sets the result of a search that has come to a leaf. It returns false for
// one that has come there by a shortcut that was another's.
func (t *trie) answer(v *visit, ranks []int, below bool) bool {
	rank := int(v.at &^ leafBit)
	switch {
	case !v.at.isLeaf() || rank >= t.n: // it is empty, or damaged
		if v.short {
			return false
		}
		if ranks[v.i] = -1; below {
			ranks[v.i] = 0
		}
		return true
	case v.miss && !v.short && !below:
		ranks[v.i] = -1
		return true
	}
	alike, order := t.keys.compare(rank, v.key)
	if order != 0 && v.short && alike < t.short.Depth {
		return false
	}
	switch {
	case order == 0:
		ranks[v.i] = rank
	case below:
		ranks[v.i] = t.resolve(v.key, alike, order, false)
	default:
		ranks[v.i] = -1
	}
	return true
}

// seek returns the number of keys below key, or up to it where after is true, and
// reports whether there is such a key.
func (t *trie) seek(key string, after bool) (rank int, equal bool) {
	var v visit
	l, _ := t.short.Enter(key)
	for {
		for t.enter(&v, key, 0, link(l)); v.at.isInner(); {
			t.step(&v)
		}
		rank = int(v.at &^ leafBit)
		if v.at.isLeaf() && rank < t.n {
			break
		}
		if !v.short {
			return 0, false
		}
		l = 0
	}
	alike, order := t.keys.compare(rank, key)
	if order != 0 && v.short && alike < t.short.Depth {
		return t.seekFromRoot(key, after)
	}
	if order != 0 || after {
		rank = t.resolve(key, alike, order, after)
	}
	return rank, order == 0
}

// seekFromRoot is seek for a key whose shortcut was another's.
func (t *trie) seekFromRoot(key string, after bool) (rank int, equal bool) {
	plain := *t
	plain.short = nil
	return plain.seek(key, after)
}

// resolve returns the number of keys below key, or up to it where after is true. The
// way of the key has led to one that it has its first bytes in common with, and no key
// is more like it; order is that of the two.
func (t *trie) resolve(key string, alike, order int, after bool) int {
	l, right := t.root, link(0) // right follows the sub-tree
	for depth := int64(-1); l.isInner(); {
		h := t.at(l)
		d := int64(h.depth)
		if d <= depth || d > int64(alike) {
			break
		}
		depth = d
		if int(d) == len(key) {
			if h.own == 0 || !after {
				return t.below(l)
			}
			if l.kind() == trieWide {
				return t.below(*t.linkAt(l, 0))
			}
			_, first, _ := h.from(l.kind(), 0)
			return t.below(first)
		}
		if l.kind() == trieWide {
			slot := t.slotOf(l, key)
			if next := *t.linkAt(l, slot+1); next != 0 {
				right = next
			}
			if l = *t.linkAt(l, slot); l.kind() == nothing {
				return t.below(l)
			}
			continue
		}
		b, to, next := h.from(l.kind(), int(key[d]))
		switch {
		case to == 0:
			return t.end(right)
		case b > int(key[d]):
			return t.below(to)
		}
		if l = to; next != 0 {
			right = next
		}
	}
	if order < 0 || order == 0 && !after {
		return t.below(l)
	}
	return t.end(right)
}

// end returns the rank at which the keys before a link end; 0 stands for the end of all.
func (t *trie) end(right link) int {
	if right == 0 {
		return t.n
	}
	return t.below(right)
}
