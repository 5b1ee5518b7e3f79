package fast

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/pando-index/pando/internal/partial"
	"github.com/pando-index/pando/internal/simd"
)

// TextPages is the rival of the radix tree for strings that change: pages of strings
// by partial keys, as the words layout has them, under a B+-tree. It has only the
// operations of the comparison (experiment strings-tree): one goroutine, no deletes,
// no snapshots.
//
//	node   up to 64 lowest keys, and the 8 bytes of each behind what all of them
//	       begin with: a key is compared with these, and with whole keys where equal
//	page   up to 64 keys: a program, partial keys of 32 bits, where each key lies
//	       among the page's bytes, values
type TextPages struct {
	root  *textNode
	n     int
	bytes int
}

const textFan = 64

// textNode is an inner node of the directory.
type textNode struct {
	n      int
	prefix int // bytes that all lows begin with
	words  [textFan]uint64
	lows   [textFan]string // of the children; the first is not asked for
	nodes  [textFan]*textNode
	pages  [textFan]*textPage // on the last level
}

// textPage is a page; places are offset and length of 16 bits each.
type textPage struct {
	program  simd.Program
	n        int
	partials [textFan]uint32
	places   [textFan]uint64
	vals     [textFan]uint64
	bytes    []byte
}

// NewTextPages returns an empty map.
func NewTextPages() *TextPages {
	r := &textNode{n: 1}
	r.pages[0] = new(textPage)
	return &TextPages{root: r, bytes: int(unsafe.Sizeof(textNode{}) + unsafe.Sizeof(textPage{}))}
}

// Len returns the number of entries.
func (t *TextPages) Len() int { return t.n }

// Bytes returns the memory that the map takes, as far as it is asked for.
func (t *TextPages) Bytes() int { return t.bytes }

func (p *textPage) key(i int) string {
	at, n := p.places[i]>>32, int(uint32(p.places[i]))
	if n == 0 {
		return ""
	}
	return unsafe.String(&p.bytes[at], n)
}

// child returns which child of a node a key belongs to.
func (x *textNode) child(key string) int {
	if x.n == 1 {
		return 0
	}
	p := x.lows[1][:x.prefix]
	if len(key) < len(p) || key[:len(p)] != p {
		if key < p {
			return 0
		}
		return x.n - 1
	}
	w := simd.StringWord(key, x.prefix)
	lo, hi := 1, x.n
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if v := x.words[mid]; v < w || v == w && x.lows[mid] <= key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo - 1
}

// learn computes the common prefix of all lowest keys, and the words behind it.
func (x *textNode) learn() {
	if x.n < 2 {
		return
	}
	a, b := x.lows[1], x.lows[x.n-1]
	x.prefix = 0
	for x.prefix < min(len(a), len(b)) && a[x.prefix] == b[x.prefix] {
		x.prefix++
	}
	for i := 1; i < x.n; i++ {
		x.words[i] = simd.StringWord(x.lows[i], x.prefix)
	}
}

// partial returns the partial key of a key.
func (p *textPage) partial(key string) uint32 {
	var out [1]uint32
	simd.Extract(unsafe.Pointer(&p.program), 0, []int{0}, []string{key}, out[:])
	return out[0]
}

// find returns the place of a key in a page, and reports whether it is there.
func (p *textPage) find(key string) (at int, ok bool) { return p.findBy(key, p.partial(key)) }

// findBy is find for a caller that has the partial key.
func (p *textPage) findBy(key string, q uint32) (at int, ok bool) {
	at, _ = slices.BinarySearch(p.partials[:p.n], q)
	for ; at < p.n && p.partials[at] == q; at++ {
		if p.key(at) == key {
			return at, true
		}
	}
	return 0, false
}

// place returns where a key that is not in a page belongs. Partial keys lead a
// missing key astray, so whole keys decide.
func (p *textPage) place(key string) int {
	at, _ := slices.BinarySearchFunc(p.places[:p.n], key, func(place uint64, key string) int {
		at, n := place>>32, uint32(place)
		return strings.Compare(string(p.bytes[at:at+uint64(n)]), key)
	})
	return at
}

// learn chooses the bits of a page, and takes partial keys.
func (p *textPage) learn() {
	p.program = partial.Chooser{Bits: 32, Workers: 1}.Program(p.n, p.key)
	for i := range p.n {
		p.partials[i] = p.partial(p.key(i))
	}
}

// Set sets the value of a key.
func (t *TextPages) Set(key string, val uint64) {
	var way [12]struct {
		x *textNode
		i int
	}
	depth, x := 0, t.root
	for {
		i := x.child(key)
		way[depth].x, way[depth].i = x, i
		depth++
		if x.nodes[i] == nil {
			break
		}
		x = x.nodes[i]
	}
	p := x.pages[way[depth-1].i]
	if at, ok := p.find(key); ok {
		p.vals[at] = val
		return
	}
	p.insert(key, val)
	t.n++
	t.bytes += len(key)
	if p.n < textFan {
		return
	}
	right := p.split()
	t.bytes += int(unsafe.Sizeof(textPage{}))
	low, node := strings.Clone(right.key(0)), (*textNode)(nil)
	t.bytes += len(low)
	for d := depth - 1; d >= 0; d-- {
		if x = way[d].x; !x.add(way[d].i+1, low, node, right) {
			return
		}
		low, node = x.split()
		right = nil
		t.bytes += int(unsafe.Sizeof(textNode{}))
	}
	r := &textNode{n: 2}
	r.nodes[0], r.nodes[1], r.lows[1] = t.root, node, low
	r.learn()
	t.root = r
}

// insert adds a key. Where the program tells it apart from its neighbours, the
// other partial keys stay.
func (p *textPage) insert(key string, val uint64) {
	i := p.place(key)
	copy(p.partials[i+1:p.n+1], p.partials[i:p.n])
	copy(p.places[i+1:p.n+1], p.places[i:p.n])
	copy(p.vals[i+1:p.n+1], p.vals[i:p.n])
	p.places[i] = uint64(len(p.bytes))<<32 | uint64(len(key))
	p.bytes = append(p.bytes, key...)
	p.vals[i] = val
	p.n++
	q := p.partial(key)
	p.partials[i] = q
	if i > 0 && p.partials[i-1] >= q || i+1 < p.n && q >= p.partials[i+1] {
		p.learn()
	}
}

// split moves the upper half to a new page.
func (p *textPage) split() *textPage {
	half := p.n / 2
	r := &textPage{}
	old := *p
	p.n, p.bytes = 0, nil
	for i := range old.n {
		to := p
		if i >= half {
			to = r
		}
		k := old.key(i)
		to.places[to.n] = uint64(len(to.bytes))<<32 | uint64(len(k))
		to.bytes = append(to.bytes, k...)
		to.vals[to.n] = old.vals[i]
		to.n++
	}
	p.learn()
	r.learn()
	return r
}

// add adds a child, and reports whether the node is full.
func (x *textNode) add(i int, low string, node *textNode, page *textPage) (full bool) {
	copy(x.lows[i+1:x.n+1], x.lows[i:x.n])
	copy(x.nodes[i+1:x.n+1], x.nodes[i:x.n])
	copy(x.pages[i+1:x.n+1], x.pages[i:x.n])
	x.lows[i], x.nodes[i], x.pages[i] = low, node, page
	x.n++
	x.learn()
	return x.n == textFan
}

// split moves the upper half to a new node.
func (x *textNode) split() (low string, r *textNode) {
	half := x.n / 2
	r = &textNode{n: x.n - half}
	copy(r.lows[:], x.lows[half:x.n])
	copy(r.nodes[:], x.nodes[half:x.n])
	copy(r.pages[:], x.pages[half:x.n])
	clear(x.nodes[half:])
	clear(x.pages[half:])
	clear(x.lows[half:])
	x.n = half
	x.learn()
	r.learn()
	return r.lows[0], r
}

// Get returns the value of a key, and reports whether there is one.
func (t *TextPages) Get(key string) (val uint64, ok bool) {
	x := t.root
	for {
		i := x.child(key)
		if x.nodes[i] == nil {
			p := x.pages[i]
			if at, ok := p.find(key); ok {
				return p.vals[at], true
			}
			return 0, false
		}
		x = x.nodes[i]
	}
}

// GetBatch looks up keys, a group at a time through each level.
func (t *TextPages) GetBatch(keys []string, vals []uint64, found []bool) (hits int) {
	const group = 128
	var at [group]*textNode
	var pages [group]*textPage
	var partials [group]uint32
	for lo := 0; lo < len(keys); lo += group {
		ks := keys[lo:min(lo+group, len(keys))]
		simd.FetchStrings(ks)
		for i := range ks {
			at[i] = t.root
		}
		for more := true; more; {
			more = false
			for i, key := range ks {
				x := at[i]
				c := x.child(key)
				if next := x.nodes[c]; next != nil {
					at[i], more = next, true
					simd.PrefetchAt(unsafe.Pointer(next), 9)
				} else {
					pages[i] = x.pages[c]
					simd.PrefetchAt(unsafe.Pointer(pages[i]), 6)
				}
			}
		}
		for i, key := range ks {
			p := pages[i]
			q := p.partial(key)
			partials[i] = q
			j, _ := slices.BinarySearch(p.partials[:p.n], q)
			if j < p.n {
				simd.PrefetchAt(unsafe.Pointer(&p.vals[j]), 1)
				if k := p.key(j); len(k) > 0 {
					simd.PrefetchAt(unsafe.Pointer(unsafe.StringData(k)), 1+len(k)/64)
				}
			}
		}
		for i, key := range ks {
			j, ok := pages[i].findBy(key, partials[i])
			vals[lo+i], found[lo+i] = 0, ok
			if ok {
				vals[lo+i] = pages[i].vals[j]
				hits++
			}
		}
	}
	return hits
}

// Scan calls yield with all entries in order, until it returns false.
func (t *TextPages) Scan(yield func(key string, val uint64) bool) { t.root.scan(yield) }

func (x *textNode) scan(yield func(key string, val uint64) bool) bool {
	for i := range x.n {
		if x.nodes[i] != nil {
			if !x.nodes[i].scan(yield) {
				return false
			}
			continue
		}
		p := x.pages[i]
		for j := range p.n {
			if !yield(p.key(j), p.vals[j]) {
				return false
			}
		}
	}
	return true
}
