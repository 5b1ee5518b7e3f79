package simd

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Path is a way to execute a search: an instruction set, or plain Go.
type Path uint8

const (
	Go Path = iota
	AVX2
	AVX512
)

func (p Path) String() string {
	return [...]string{"Go", "AVX2", "AVX-512"}[p]
}

// Paths returns the paths that this machine can execute, the fastest last.
func Paths() []Path { return available }

// Active returns the path that searches take.
func Active() Path { return active }

// Use makes all later searches take path p, and returns a function that undoes
// it. It is for tests and benchmarks, and must not be called while searches
// run.
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

// Rank sets ranks[i] to the number of entries with a key below keys[i]. ranks
// must be at least as long as keys.
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

// Descend sets places[i] to the place below the last level that keys[i] leads
// to.
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

// Find sets ranks[i] to the rank of the first entry whose key is keys[i], or
// to -1 if there is none. It prefetches that entry's value.
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
// and as many values of the same width in their second half. It sets vals[i]
// to the value of the first entry with key keys[i], or to 0 if there is none.
// Unless found is nil, found[i] reports whether there is one. GetPairs returns
// the number of keys found.
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

// Seek returns the number of entries with a key below key, and reports whether
// the entry at that rank has exactly that key.
func Seek[C Code](t *Tree, key C) (rank int, equal bool) {
	if active == Go {
		return seekGo(t, key)
	}
	return seekAsm(bytes(t), wide[C](), uint64(key))
}

// Prefetch prefetches the n cache lines that start at place, which will be
// read soon. In plain Go it does nothing.
func (t *Tree) Prefetch(place uint64, n int) {
	if active != Go && n > 0 {
		prefetchAsm((*byte)(unsafe.Add(t.Base, place*8)), n)
	}
}

// Fetch prefetches the n cache lines from an address on. In plain Go it does
// nothing.
func Fetch(at unsafe.Pointer, n int) {
	if active != Go && n > 0 {
		prefetchAsm((*byte)(at), n)
	}
}

// Copy copies src to dst with stores that bypass the caches. It is for memory
// that this CPU does not read again soon, such as what a GPU fetches, or the
// results of a large batch. A plain copy would first read the lines it
// overwrites. dst must be at least as long as src.
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

// Pause waits for less than a microsecond. It does not yield the core to
// another goroutine, but leaves it to the other hardware thread.
func Pause() {
	if active != Go {
		pauseAsm(4)
	}
}

// Wait waits for another goroutine's change: a moment at first, then by leaving the
// thread to others. try counts from 0.
func Wait(try int) {
	if try < 16 {
		Pause()
		return
	}
	runtime.Gosched()
}

func wide[C Code]() bool {
	var c C
	return unsafe.Sizeof(c) == 8
}

// bytes returns a pointer in the form that the assembly takes.
func bytes[T any](p *T) *byte { return (*byte)(unsafe.Pointer(p)) }
