package trie

import (
	"fmt"

	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
)

// shownKeys is how many keys of a trie are shown together.
const shownKeys = 64

// mostShown is how many bytes of a key are copied: keys may be of any length.
const mostShown = 256

// trieLook shows the keys of a trie in parts, and which nodes a search goes through.
// The nodes themselves have no levels that stand over all keys, of which a look is
// made.
type trieLook struct {
	*trie
	probe func(i int) order.Probe
	text  func(key order.Probe) string
}

// Look returns the trie as one level of parts.
func (t *StringTree) Look() layout.Look {
	return trieLook{t.trie, func(i int) order.Probe {
		text := t.list.View(i)
		return order.Probe{Text: string([]byte(text[:min(len(text), mostShown)]))}
	}, func(key order.Probe) string { return key.Text }}
}

// Look returns the trie as one level of parts.
func (t *NumberTree[C]) Look() layout.Look {
	return trieLook{t.trie, func(i int) order.Probe { return order.Probe{Code: uint64(t.codes[i])} }, func(key order.Probe) string {
		return bigEndian(key.Code, widthOf[C](), new([8]byte))
	}}
}

func (k trieLook) Levels() []layout.Level {
	return []layout.Level{{Name: "keys", Nodes: max(1, (k.n+shownKeys-1)/shownKeys), Room: shownKeys}}
}

func (k trieLook) Node(_, i int) layout.Node {
	n := layout.Node{First: i, End: i + 1, Link: -1, Room: shownKeys, Entry: i * shownKeys}
	n.Used = min(shownKeys, k.n-n.Entry)
	n.Entries = n.Used
	return n
}

func (k trieLook) Over(_, i int) int { return i }

func (k trieLook) Inside(_, i int) layout.Inside {
	n := k.Node(0, i)
	in := layout.Inside{Entries: true, PerLine: shownKeys, Notes: []string{"Nodes lead to single keys, which are shown in parts."}}
	for s := range n.Used {
		in.Keys = append(in.Keys, k.probe(n.Entry+s))
	}
	return in
}

func (k trieLook) Way(key order.Probe) []layout.Visit {
	text := k.text(key)
	at, found := k.seek(text, false)
	v := layout.Visit{Node: max(0, min(at, k.n-1)) / shownKeys, Found: found, Note: k.way(text)}
	v.Slot = at - v.Node*shownKeys
	return []layout.Visit{v}
}

// way says which nodes a search goes through.
func (k trieLook) way(key string) string {
	v, nodes := visit{}, 0
	by := "the root"
	l, short := k.short.Enter(key)
	if short {
		by = "a shortcut"
	}
	for k.enter(&v, key, 0, link(l)); v.at.isInner(); nodes++ {
		k.step(&v)
	}
	return fmt.Sprintf("found from %s by way of %d nodes", by, nodes)
}
