package trie

import "github.com/pando-index/pando/internal/shortcut"

// link is a typed reference: to a node by the number it has among those of its type, or to
// a key by its rank. That of type 0, nothing, leads nowhere.
type link uint32

const (
	nothing   = 0
	typeShift = 28
	numberMax = 1<<typeShift - 1
	leafBit   = 1 << 31
)

func (l link) kind() int     { return int(l >> typeShift) }
func (l link) number() int   { return int(l & numberMax) }
func (l link) isInner() bool { return l-1<<typeShift < trieWide<<typeShift }
func (l link) isLeaf() bool  { return l >= leafBit }

func linkTo(kind, number int) link { return link(kind<<typeShift | number) }

const (
	bucketKeys = shortcut.Keys
	deepest    = shortcut.Deepest
)
