package device

import (
	"slices"
	"sync"
	"unsafe"
)

// shared is the page-locked memory that callers of Pando hold: copies run
// directly from and to it.
var shared struct {
	sync.RWMutex
	spans []span // few, unordered
}

type span struct{ first, end uintptr }

func spanOf(b []byte) span {
	first := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	return span{first, first + uintptr(len(b))}
}

// Share marks memory as page-locked, for every GPU, until Unshare.
func Share(b []byte) {
	shared.Lock()
	defer shared.Unlock()
	shared.spans = append(shared.spans, spanOf(b))
}

// Unshare undoes Share for the same memory.
func Unshare(b []byte) {
	shared.Lock()
	defer shared.Unlock()
	if i := slices.Index(shared.spans, spanOf(b)); i >= 0 {
		shared.spans = slices.Delete(shared.spans, i, i+1)
	}
}

// Shared reports whether all of b is within memory that was shared.
func Shared(b []byte) bool {
	shared.RLock()
	defer shared.RUnlock()
	s := spanOf(b)
	return len(b) > 0 && slices.ContainsFunc(shared.spans, func(in span) bool { return in.first <= s.first && s.end <= in.end })
}
