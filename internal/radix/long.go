package radix

import (
	"sync"
	"sync/atomic"
)

// longKeys is the keys that are too long for a leaf, each under a number. A
// reader with an old number finds nothing, or another key.
type longKeys struct {
	mu    sync.Mutex
	free  []uint32
	next  uint32
	slabs atomic.Pointer[[]*longSlab]
	bytes atomic.Int64
}

const slabKeys = 256

type longSlab [slabKeys]atomic.Pointer[string]

// put returns the number of a new key, which is copied.
func (k *longKeys) put(key string) (handle uint32) {
	own := string(append([]byte(nil), key...))
	k.mu.Lock()
	defer k.mu.Unlock()
	if n := len(k.free); n > 0 {
		handle, k.free = k.free[n-1], k.free[:n-1]
	} else {
		handle = k.next
		k.next++
		if handle%slabKeys == 0 {
			var all []*longSlab
			if old := k.slabs.Load(); old != nil {
				all = *old
			}
			all = append(all[:len(all):len(all)], new(longSlab))
			k.slabs.Store(&all)
		}
	}
	k.at(handle).Store(&own)
	k.bytes.Add(int64(len(own)))
	return handle
}

// at returns where the key with a number lies; nil if there cannot be one.
func (k *longKeys) at(handle uint32) *atomic.Pointer[string] {
	all := k.slabs.Load()
	if all == nil || handle/slabKeys >= uint32(len(*all)) {
		return nil
	}
	return &(*all)[handle/slabKeys][handle%slabKeys]
}

// get returns the key with a number.
func (k *longKeys) get(handle uint32) string {
	if at := k.at(handle); at != nil {
		if s := at.Load(); s != nil {
			return *s
		}
	}
	return ""
}

// drop forgets a key.
func (k *longKeys) drop(handle uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.at(handle).Swap(nil); s != nil {
		k.bytes.Add(-int64(len(*s)))
		k.free = append(k.free, handle)
	}
}

// clear forgets all keys.
func (k *longKeys) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.slabs.Store(nil)
	k.free, k.next = nil, 0
	k.bytes.Store(0)
}
