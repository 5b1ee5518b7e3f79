//go:build !unix || aix || solaris || illumos

package arena

import (
	"os"
	"unsafe"
)

// On systems without mmap a block is plain Go memory without pointers: the
// garbage collector frees it when the last reader is gone.

const (
	onHeap    = true
	noReserve = 0
)

func reserve(length uintptr, _ Pages) (*mapping, error) {
	buf := make([]byte, length+4096)
	addr := unsafe.Pointer(unsafe.SliceData(buf))
	return &mapping{addr: unsafe.Add(addr, -uintptr(addr)&4095), length: length}, nil
}

func adviseHuge(*mapping, uintptr) {}

func discard(*mapping) {}

func unreserve(*mapping) {}

func mapFile(f *os.File, length, slack uintptr, limit int64) (*mapping, error) {
	return readFile(f, length, slack, limit)
}

// reserveBytes bounds the addresses that a Pool reserves: here they are memory.
const reserveBytes = 64 << 20

// FewAddresses reports whether addresses are dear, so that many pools must be
// small ones.
const FewAddresses = true

func reserveLater(length uintptr) (unsafe.Pointer, error) {
	m, err := reserve(length, Small)
	return m.addr, err
}

// reserveAt returns nil: Go chooses addresses.
func reserveAt(unsafe.Pointer, uintptr) (unsafe.Pointer, error) { return nil, nil }

func unreserveAt(unsafe.Pointer, uintptr) {}

func decommit(at unsafe.Pointer, length uintptr) { clear(unsafe.Slice((*byte)(at), length)) }
