package simd

import (
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/mutant"
	"github.com/pando-index/pando/internal/stall"
)

// Regular describes a regular B+-tree, one that changes while it is searched
// (package bplus), to the search routines. Nodes are numbered, and lie one
// behind the other in three regions that stay readable whatever happens:
//
//	upper node   0    index line: the last separator of each line but the last; the rest is the
//	                  maximum; the node's word is in the last 8 bytes
//	             64   not read by searches
//	             128  64 separators: the greatest key that may be below each child
//	             …    64 references to children, 32 bits each
//	             …    not read by searches
//	leaf: pilot  0    index line, as above
//	             64   not read by searches
//	             128  64 separators: the greatest key that may be in each line of the leaf's block
//	leaf: block  64 lines: keys in the first half of a line, values in the second
//
// A step counts the separators of the index line below the key, then those of
// the line that this number picks: together the number of the child, or of the
// line of the block. In a leaf that number may be RegularFanout: the key is above
// all that the leaf may hold, which has been split meanwhile.
//
// The upper nodes that a search meets do not change, but for their references.
// Leaves do, and their word tells: a writer sets WordLocked, changes the leaf,
// and stores a word with another sequence number. So a search reads the word
// first, then the leaf, then the word again.
//
// The assembly reads the fields at fixed offsets; regular_amd64_test.go checks
// them.
type Regular struct {
	Uppers   unsafe.Pointer // upper node 0
	Pilots   unsafe.Pointer // pilot of leaf 0
	Blocks   unsafe.Pointer // block of leaf 0
	Root     uint64         // number of the root
	Height   uint64         // levels of upper nodes; 0 if the root is a leaf
	Distance uint64         // queries between two steps of one query, at least 1
	Leaves   uint64         // numbers of leaves are below this: for places that GetPlaced is given
}

// interrupted reports whether tests hold goroutines up between steps, or leave
// steps out: then plain Go runs, which has such points.
const interrupted = stall.On || mutant.On

// RegularFanout is the number of children of an upper node, and of lines in
// the block of a leaf.
const RegularFanout = 64

// RegularBlock is the size of a leaf's block in bytes.
const RegularBlock = RegularFanout * LineBytes

const (
	regularWord = LineBytes - 8 // offset of a node's word
	regularSeps = 2 * LineBytes // offset of its separators
)

// The word of a leaf: whether it may be changed, how many entries it has, and
// a sequence number.
const (
	WordLocked   = 1 << 0 // being changed
	WordSealed   = 1 << 1 // may be read, but not changed
	WordDead     = 1 << 2 // no longer part of the tree
	WordBusy     = WordLocked | WordSealed | WordDead
	WordCount    = 3         // shift of the number of entries
	WordCountMax = 1<<10 - 1 // greatest number of entries
	WordSequence = 3 + 10    // shift of the sequence number
	wordUnread   = WordLocked | WordDead
)

// RegularSeps returns the separators of the upper node or pilot at an address.
func RegularSeps[C Code](node unsafe.Pointer) *[RegularFanout]C {
	return (*[RegularFanout]C)(unsafe.Add(node, regularSeps))
}

// RegularIndex returns the separators in the index line of a node.
func RegularIndex[C Code](node unsafe.Pointer) []C {
	return unsafe.Slice((*C)(node), regularWord/int(unsafe.Sizeof(C(0))))
}

// RegularWord returns the word of a node.
func RegularWord(node unsafe.Pointer) *uint64 { return (*uint64)(unsafe.Add(node, regularWord)) }

// RegularRefs returns the references of an upper node.
func RegularRefs[C Code](node unsafe.Pointer) *[RegularFanout]uint32 {
	return (*[RegularFanout]uint32)(unsafe.Add(node, regularRefs[C]()))
}

func regularRefs[C Code]() int { return regularSeps + RegularFanout*int(unsafe.Sizeof(C(0))) }

// RegularPilot returns the size of a pilot in bytes.
func RegularPilot[C Code]() int { return regularRefs[C]() }

// RegularUpper returns the size of an upper node in bytes: behind the
// references are 64 numbers of 64 bits that searches do not read.
func RegularUpper[C Code]() int { return regularRefs[C]() + RegularFanout*(4+8) }

// regularStep returns the number of separators of a node that are below key.
func regularStep[C Code](node unsafe.Pointer, key C) int {
	perLine := LineBytes / int(unsafe.Sizeof(key))
	s := linearShared(RegularIndex[C](node), key)
	s = min(s, RegularFanout/perLine-1) // always, unless the node is being reused
	line := RegularSeps[C](node)[s*perLine : (s+1)*perLine]
	return s*perLine + linearShared(line, key)
}

// linearShared is linear for a line that may be changed meanwhile. A search
// must not read the word again before it has read the lines; only atomic loads
// keep that order on every machine.
func linearShared[C Code](line []C, key C) int {
	n := 0
	for i := range line {
		if loadShared(&line[i]) < key {
			n++
		}
	}
	return n
}

func loadShared[C Code](at *C) C {
	if wide[C]() {
		return C(atomic.LoadUint64((*uint64)(unsafe.Pointer(at))))
	}
	return C(atomic.LoadUint32((*uint32)(unsafe.Pointer(at))))
}

// RegularDistance is a Distance that serves trees of every size: 16 to 48 differ
// by less than 3 %, and 16 is mostly ahead (BenchmarkRegular).
const RegularDistance = 16

// regularRing is the number of queries whose state the assembly keeps.
const regularRing = 256

// pace returns how a batch of n keys goes down: the number of first levels that
// a query walks through at once, since they are in the nearest caches, and the
// queries between two steps. A short batch needs no long staircase, and a high
// tree has room for a short one only.
func pace[C Code](r *Regular, n int) (top, distance int) {
	top = nearLevels[C](r)
	steps := 2*(int(r.Height)-top) + 3
	return top, max(1, min(int(r.Distance), n, (regularRing-1)/steps))
}

// nearLevels returns 2, since two levels have at most 65 nodes; or 3, if the
// root has at most 3 children. A third level of some 200 nodes is 4 % faster
// walked at once, one of 512 is 20 % slower (BenchmarkRegular).
func nearLevels[C Code](r *Regular) int {
	if r.Height < 3 {
		return int(r.Height)
	}
	refs := RegularRefs[C](unsafe.Add(r.Uppers, uintptr(r.Root)*uintptr(RegularUpper[C]())))
	if atomic.LoadUint32(&refs[2]) == atomic.LoadUint32(&refs[RegularFanout-1]) { // unused ones repeat the last
		return 3
	}
	return 2
}

// SeekRegular returns the leaf and the line of its block that key belongs to,
// RegularFanout where the key is above the leaf; and the leaf's word as it was
// before the search in it.
func SeekRegular[C Code](r *Regular, key C) (leaf uint32, line int, word uint64) {
	if active == Go || interrupted {
		return seekRegularGo(r, key)
	}
	return seekRegularAsm(bytes(r), wide[C](), uint64(key))
}

// seekRegularGo is SeekRegular in plain Go.
func seekRegularGo[C Code](r *Regular, key C) (leaf uint32, line int, word uint64) {
	x := uint32(r.Root)
	for range r.Height {
		node := unsafe.Add(r.Uppers, uintptr(x)*uintptr(RegularUpper[C]()))
		i := min(regularStep(node, key), RegularFanout-1)
		stall.At("seek: child found")
		x = atomic.LoadUint32(&RegularRefs[C](node)[i])
	}
	pilot := unsafe.Add(r.Pilots, uintptr(x)*uintptr(RegularPilot[C]()))
	stall.At("seek: leaf found")
	word = atomic.LoadUint64(RegularWord(pilot))
	stall.At("seek: word read")
	return x, regularStep(pilot, key), word
}

// PlaceRegular sets places[i] to the leaf that keys[i] belongs to, times 256,
// plus the line of its block, and prefetches that line.
func PlaceRegular[C Code](r *Regular, keys []C, places []uint64) {
	_ = places[:len(keys)]
	if len(keys) == 0 {
		return
	}
	if active == Go || interrupted {
		placeRegularGo(r, keys, places)
		return
	}
	top, distance := pace[C](r, len(keys))
	placeRegularAsm(bytes(r), wide[C](), bytes(&keys[0]), len(keys), &places[0], top, distance)
}

// placeRegularGo is PlaceRegular in plain Go.
func placeRegularGo[C Code](r *Regular, keys []C, places []uint64) {
	for i, key := range keys {
		leaf, line, _ := seekRegularGo(r, key)
		places[i] = uint64(leaf)<<8 | uint64(line)
	}
}

// GetRegular sets vals[i] to the value of keys[i], or to 0, and found[i], where
// found is not nil, to whether there is one. It returns the number of keys
// found. Queries that met a leaf that is being changed, is dead, or lies left of
// the key are left as they are: their numbers are in again[:repeat].
func GetRegular[C Code](r *Regular, keys, vals []C, found []bool, again []int32) (hits, repeat int) {
	_, _ = vals[:len(keys)], again[:len(keys)]
	if len(keys) == 0 {
		return 0, 0
	}
	if found != nil {
		_ = found[:len(keys)]
	}
	if active == Go || interrupted {
		return getRegularGo(r, keys, vals, found, again)
	}
	top, distance := pace[C](r, len(keys))
	return getRegularAsm(bytes(r), wide[C](), bytes(&keys[0]), len(keys), bytes(&vals[0]), unsafe.SliceData(found), &again[0], top, distance)
}

// getRegularGo is GetRegular in plain Go.
func getRegularGo[C Code](r *Regular, keys, vals []C, found []bool, again []int32) (hits, repeat int) {
	for i, key := range keys {
		val, ok, valid := getOneRegular(r, key)
		if !valid {
			again[repeat] = int32(i)
			repeat++
			continue
		}
		vals[i] = val
		if found != nil {
			found[i] = ok
		}
		if ok {
			hits++
		}
	}
	return hits, repeat
}

// getOneRegular returns the value of a key, and whether there is one; valid
// reports whether that was so at one time.
func getOneRegular[C Code](r *Regular, key C) (val C, ok, valid bool) {
	leaf, line, word := seekRegularGo(r, key)
	if line == RegularFanout || word&wordUnread != 0 {
		return 0, false, false
	}
	stall.At("get batch: line found")
	val, ok = regularPair(unsafe.Add(r.Blocks, uintptr(leaf)*RegularBlock+uintptr(line)*LineBytes), key)
	stall.At("get batch: value read")
	pilot := unsafe.Add(r.Pilots, uintptr(leaf)*uintptr(RegularPilot[C]()))
	return val, ok, atomic.LoadUint64(RegularWord(pilot)) == word || mutant.On && mutant.Is("version")
}

// regularPair returns the value of the first key of a line that is key.
func regularPair[C Code](line unsafe.Pointer, key C) (val C, ok bool) {
	half := LineBytes / 2 / int(unsafe.Sizeof(key))
	pairs := unsafe.Slice((*C)(line), 2*half)
	for i := range half {
		if loadShared(&pairs[i]) == key {
			return loadShared(&pairs[half+i]), true
		}
	}
	return 0, false
}

// Change is a change of a leaf, all of it or none: whole lines that replace
// others, while the leaf's word is locked. If the line that holds the word is
// one of them, the new one must hold it as it is then: Was|WordLocked. The
// assembly reads the fields at fixed offsets; regular_amd64_test.go checks them.
type Change struct {
	Word     *uint64 // the leaf's
	Was      uint64  // its value before
	Will     uint64  // its value afterwards
	Epoch    *uint64 // a word that must be EpochIs once the leaf is locked
	EpochIs  uint64
	Gen      *uint64 // a word that may be at most one above GenIs then
	GenIs    uint64
	Dst, Src [3]unsafe.Pointer // lines go from Src[i] to Dst[i], a multiple of 64
	Lines    [3]int
}

// Commit makes a change. It returns false, and leaves the leaf as it is, if the
// leaf's word, the epoch or the generation is another. In assembly it is never
// interrupted by the scheduler, so that nobody waits long for the leaf.
func Commit(c *Change) bool {
	stall.At("commit: computed")
	if mutant.On && (mutant.Is("lock") || mutant.Is("word last")) {
		return commitWrong(c)
	}
	if active == Go || interrupted {
		return commitGo(c)
	}
	return commitAsm(bytes(c))
}

// commitGo is Commit in plain Go.
func commitGo(c *Change) bool {
	if !atomic.CompareAndSwapUint64(c.Word, c.Was, c.Was|WordLocked) {
		return false
	}
	stall.At("commit: locked")
	epoch := atomic.LoadUint64(c.Epoch) != c.EpochIs && !(mutant.On && mutant.Is("epoch"))
	gen := atomic.LoadUint64(c.Gen)-c.GenIs > 1 && !(mutant.On && mutant.Is("generation"))
	if epoch || gen {
		atomic.CompareAndSwapUint64(c.Word, c.Was|WordLocked, c.Was)
		return false
	}
	stall.At("commit: checked")
	for i, n := range c.Lines {
		dst := unsafe.Slice((*uint64)(c.Dst[i]), n*LineBytes/8)
		for j, w := range unsafe.Slice((*uint64)(c.Src[i]), n*LineBytes/8) {
			atomic.StoreUint64(&dst[j], w)
		}
	}
	stall.At("commit: lines stored")
	atomic.StoreUint64(c.Word, c.Will)
	return true
}

// commitWrong is Commit with its stores in another order, for tests that must
// notice: the leaf is not locked, or its new word is stored first.
func commitWrong(c *Change) bool {
	if atomic.LoadUint64(c.Epoch) != c.EpochIs || atomic.LoadUint64(c.Gen)-c.GenIs > 1 || atomic.LoadUint64(c.Word) != c.Was {
		return false
	}
	if mutant.Is("word last") && !atomic.CompareAndSwapUint64(c.Word, c.Was, c.Will) {
		return false
	}
	stall.At("commit: checked")
	for i, n := range c.Lines {
		dst := unsafe.Slice((*uint64)(c.Dst[i]), n*LineBytes/8)
		for j, w := range unsafe.Slice((*uint64)(c.Src[i]), n*LineBytes/8) {
			if &dst[j] != c.Word {
				dst[j] = w
			}
		}
	}
	return mutant.Is("word last") || atomic.CompareAndSwapUint64(c.Word, c.Was, c.Will)
}

// Entries returns the number of entries of a leaf with this word.
func Entries(word uint64) int { return int(word >> WordCount & WordCountMax) }

// NextWord returns the word of a leaf with n entries that follows word.
func NextWord(word uint64, n int) uint64 {
	return (word>>WordSequence+1)<<WordSequence | uint64(n)<<WordCount
}
