package simd

import (
	"fmt"
	"unsafe"
)

// Path is a way to execute: an instruction set, or plain Go.
type Path uint8

const (
	Go Path = iota
	AVX2
	AVX512
)

func (p Path) String() string {
	return [...]string{"Go", "AVX2", "AVX-512"}[p]
}

// Paths lists what this machine can execute, the fastest last.
func Paths() []Path { return available }

// Active is the path that searches take.
func Active() Path { return active }

// Use makes all later searches take a path, and gives a function that undoes
// it. It is for tests and benchmarks, and must not run beside searches.
func Use(p Path) (undo func()) {
	for _, a := range available {
		if a == p {
			old := active
			active = p
			return func() { active = old }
		}
	}
	panic(fmt.Sprintf("simd: this machine has no %v", p))
}

var (
	available = detect()
	active    = available[len(available)-1]
)

// Rank sets ranks[i] to the number of entries with a key below keys[i].
// ranks is at least as long as keys.
func Rank[C Code](t *Tree, keys []C, ranks []int) {
	_ = ranks[:len(keys)]
	if len(keys) == 0 {
		return
	}
	if active == Go {
		rankGo(t, keys, ranks)
		return
	}
	rankAsm(bytes(t), wide[C](), bytes(&keys[0]), len(keys), &ranks[0])
}

// Descend sets places[i] to the place that keys[i] leads to behind the last
// level.
func Descend[C Code](t *Tree, keys []C, places []int) {
	_ = places[:len(keys)]
	if len(keys) == 0 {
		return
	}
	if active == Go {
		downGo(t, keys, places)
		return
	}
	downAsm(bytes(t), wide[C](), bytes(&keys[0]), len(keys), &places[0])
}

// Find sets ranks[i] to the place of the first entry whose key is keys[i], or
// to -1 where there is none. It prefetches the value at that place.
func Find[C Code](t *Tree, keys []C, ranks []int) {
	_ = ranks[:len(keys)]
	if len(keys) == 0 {
		return
	}
	if active == Go {
		findGo(t, keys, ranks)
		return
	}
	findAsm(bytes(t), wide[C](), bytes(&keys[0]), len(keys), &ranks[0])
}

// GetPairs looks keys up in a tree whose leaves hold keys in their first half
// and as many values of the same width in their second. vals[i] is the value
// of the first entry with keys[i], or 0; found[i] says which, where found is
// not nil.
func GetPairs[C Code](t *Tree, keys, vals []C, found []bool) (hits int) {
	_ = vals[:len(keys)]
	if len(keys) == 0 {
		return 0
	}
	if found != nil {
		_ = found[:len(keys)]
	}
	if active == Go {
		return getGo(t, keys, vals, found)
	}
	return getAsm(bytes(t), wide[C](), bytes(&keys[0]), len(keys), bytes(&vals[0]), unsafe.SliceData(found))
}

// Seek gives the number of entries with a key below key, and whether the
// entry at that place has just that key.
func Seek[C Code](t *Tree, key C) (rank int, equal bool) {
	if active == Go {
		return seekGo(t, key)
	}
	return seekAsm(bytes(t), wide[C](), uint64(key))
}

// Prefetch asks for n lines from the one at a place on, which will be read
// soon; plain Go cannot ask.
func (t *Tree) Prefetch(place uint64, n int) {
	if active != Go && n > 0 {
		prefetchAsm((*byte)(unsafe.Add(t.Base, place*8)), n)
	}
}

// Copy copies src to dst past the caches: for memory that this CPU does not
// read again soon, such as what a GPU fetches, or the results of a large batch.
// A plain copy would first read what it overwrites. dst is at least as long.
func Copy(dst, src []byte) {
	head := 0
	if len(src) > 0 {
		head = int(-uintptr(unsafe.Pointer(&dst[0])) % LineBytes)
	}
	lines := (len(src) - head) / LineBytes
	if active == Go || lines <= 0 {
		copy(dst, src)
		return
	}
	copy(dst, src[:head])
	streamAsm(&dst[head], &src[head], lines)
	tail := head + lines*LineBytes
	copy(dst[tail:], src[tail:])
}

// Pause rests for a moment, less than a microsecond, without giving up the
// core, but leaving it to another hardware thread.
func Pause() {
	if active != Go {
		pauseAsm(4)
	}
}

func wide[C Code]() bool {
	var c C
	return unsafe.Sizeof(c) == 8
}

// bytes is a pointer as the assembly takes it.
func bytes[T any](p *T) *byte { return (*byte)(unsafe.Pointer(p)) }
