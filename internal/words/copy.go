package words

import (
	"runtime"
	"strings"
	"unsafe"
)

// chunkBytes bounds the memory that keys share which are copied out together:
// holding one of them holds this much at most. An allocation for each takes
// longer than the search and the copies of a range (experiment range-iter).
const chunkBytes = 1 << 10

// CopyKeys sets dst to the strings from lo on. They are copies, several of them
// in one piece of memory.
func (t *Tree) CopyKeys(dst []string, lo int) {
	for len(dst) > 0 {
		n, size := t.chunk(dst, lo)
		if n == 1 {
			dst[0] = strings.Clone(dst[0])
		} else {
			pack(dst[:n], size)
		}
		dst, lo = dst[n:], lo+n
	}
	runtime.KeepAlive(t) // its memory was in dst
}

// chunk sets the first of dst to strings where they lie, as many as are copied
// together, and returns how many, and their bytes. There is at least one.
func (t *Tree) chunk(dst []string, lo int) (n, size int) {
	for n < len(dst) {
		dst[n] = t.view(lo + n)
		if n > 0 && size+len(dst[n]) > chunkBytes {
			break
		}
		size += len(dst[n])
		n++
	}
	return n, size
}

// pack replaces strings by copies of them, one behind the other.
func pack(all []string, size int) {
	memory := make([]byte, 0, size)
	for i, s := range all {
		at := len(memory)
		memory = append(memory, s...)
		all[i] = unsafe.String(unsafe.SliceData(memory[at:]), len(s))
	}
}

// AppendKey appends string i to dst.
func (t *Tree) AppendKey(dst []byte, i int) []byte { return append(dst, t.view(i)...) }

// nearKeys is the number of strings within which EndNear looks, in steps that
// double, before it searches the whole tree.
const nearKeys = 64

// EndNear returns the first string from r on that is above key, which is likely
// to be near.
func (t *Tree) EndNear(r int, key string) int {
	upTo := func(s string) bool { return s <= key }
	if r >= t.n || !upTo(t.view(r)) {
		return r
	}
	step := 1
	for ; r+step < t.n && upTo(t.view(r+step)); step *= 2 {
		if r += step; step == nearKeys {
			return t.After(key)
		}
	}
	return t.halve(r+1, min(r+step, t.n), upTo)
}
