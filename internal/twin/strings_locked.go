package twin

import (
	"errors"
	"math/bits"
	"slices"
	"sync"

	"github.com/pando-index/pando/internal/device"
)

// locked is page-locked memory that is kept for later: locking it takes longer than
// the work it is for. Unless the memory in use alone exceeds most bytes, all of it
// together, in use or spare, does not.
type locked struct {
	sync.Mutex
	dev   device.Device
	most  int
	total int      // bytes of all pieces
	spare [][]byte // by their length
}

// leastLocked is the length of the shortest piece.
const leastLocked = 64 << 10

// lockedBytes returns the length of a piece that holds the given bytes: at most a
// quarter more, so that there are few lengths.
func lockedBytes(bytes int) int {
	if bytes <= leastLocked {
		return leastLocked
	}
	step := 1 << (bits.Len(uint(bytes-1)) - 3)
	return (bytes + step - 1) / step * step
}

// take returns a piece of at least the given bytes that is not much longer.
func (l *locked) take(bytes int) ([]byte, error) {
	size := lockedBytes(bytes)
	l.Lock()
	defer l.Unlock()
	i, _ := slices.BinarySearchFunc(l.spare, size, func(b []byte, size int) int { return len(b) - size })
	if i < len(l.spare) && len(l.spare[i])/2 <= size {
		b := l.spare[i]
		l.spare = slices.Delete(l.spare, i, i+1)
		return b, nil
	}
	for l.total+size > l.most && len(l.spare) > 0 {
		if err := l.drop(); err != nil {
			return nil, err
		}
	}
	b, err := l.dev.HostAlloc(size)
	if err == nil {
		l.total += size
	}
	return b, err
}

// drop frees the shortest piece that is not in use.
func (l *locked) drop() error {
	b := l.spare[0]
	l.spare = slices.Delete(l.spare, 0, 1)
	l.total -= len(b)
	return l.dev.HostFree(b)
}

// give takes a piece back.
func (l *locked) give(b []byte) {
	l.Lock()
	defer l.Unlock()
	i, _ := slices.BinarySearchFunc(l.spare, len(b), func(b []byte, size int) int { return len(b) - size })
	l.spare = slices.Insert(l.spare, i, b)
}

// close frees all pieces. None is in use.
func (l *locked) close() (err error) {
	l.Lock()
	defer l.Unlock()
	for len(l.spare) > 0 {
		err = errors.Join(err, l.drop())
	}
	return err
}
