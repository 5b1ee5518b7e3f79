//go:build unix && !aix && !solaris && !illumos

package arena

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const onHeap = false

// reserve maps length bytes of zeros, aligned to HugeSize if pages requests
// huge pages.
func reserve(length uintptr, pages Pages) (*mapping, error) {
	length = max(length, 1)
	if guard > 0 {
		return reserveGuarded(length)
	}
	if pages == HugeAll {
		if m := reserve1G(length); m != nil {
			return m, nil
		}
	}
	length = (length + 4095) &^ 4095
	if pages == Small {
		addr, err := mmap(nil, length, unix.PROT_READ|unix.PROT_WRITE, 0)
		if err != nil {
			return nil, err
		}
		return &mapping{addr: addr, length: length}, nil
	}
	addr, err := mmapAligned(length, 0)
	if err != nil {
		return nil, err
	}
	return &mapping{addr: addr, length: length}, nil
}

// mmapAligned maps length bytes, of whole pages, at a multiple of HugeSize.
func mmapAligned(length uintptr, flags int) (unsafe.Pointer, error) {
	addr, err := mmap(nil, length+HugeSize, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, err
	}
	// Keep the aligned part and unmap both ends.
	head := -uintptr(addr) & (HugeSize - 1)
	if head > 0 {
		unreserveAt(addr, head)
	}
	if tail := HugeSize - head; tail > 0 {
		unreserveAt(unsafe.Add(addr, head+length), tail)
	}
	return unsafe.Add(addr, head), nil
}

func mmap(at unsafe.Pointer, length uintptr, prot, flags int) (unsafe.Pointer, error) {
	addr, err := unix.MmapPtr(-1, 0, at, length, prot, unix.MAP_PRIVATE|unix.MAP_ANON|flags)
	return addr, named(err)
}

// named returns an error that also wraps ErrMemory where the system is out of memory.
func named(err error) error {
	if errors.Is(err, unix.ENOMEM) || errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("%w: %w", ErrMemory, err)
	}
	return err
}

// discard replaces the memory by untouched zero pages at the same addresses.
func discard(m *mapping) {
	// If that fails, the memory stays until unmap: late, but not lost.
	mmap(unsafe.Add(m.addr, -m.lead), m.lead+m.length, unix.PROT_READ, unix.MAP_FIXED|noReserve)
}

func unreserve(m *mapping) {
	unix.MunmapPtr(unsafe.Add(m.addr, -m.lead-guard), guard+m.lead+m.length+guard)
}

// reserveGuarded maps length bytes of zeros that end, but for alignment, where
// a page begins that cannot be read.
func reserveGuarded(length uintptr) (*mapping, error) {
	length = (length + Align - 1) &^ (Align - 1)
	page := uintptr(os.Getpagesize())
	pages := (length + page - 1) &^ (page - 1)
	addr, err := mmapGuarded(pages, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return nil, err
	}
	lead := pages - length
	return &mapping{addr: unsafe.Add(addr, lead), length: length, lead: lead}, nil
}

// mmapGuarded maps whole pages of zeros between two pages that cannot be read,
// if there is a guard.
func mmapGuarded(length uintptr, prot int) (unsafe.Pointer, error) {
	if guard == 0 {
		return mmap(nil, length, prot, noReserve)
	}
	addr, err := mmap(nil, guard+length+guard, unix.PROT_NONE, noReserve)
	if err != nil {
		return nil, err
	}
	return mmap(unsafe.Add(addr, guard), length, prot, unix.MAP_FIXED|noReserve)
}

// mapFile maps a file over the start of zero pages, which stay readable after
// its end.
func mapFile(f *os.File, length, slack uintptr, _ int64) (*mapping, error) {
	page := uintptr(os.Getpagesize())
	total := (max(length, 1) + slack + page - 1) &^ (page - 1)
	addr, err := mmapGuarded(total, unix.PROT_READ)
	if err != nil {
		return nil, fmt.Errorf("cannot map %d bytes: %w", length, err)
	}
	m := &mapping{addr: addr, length: total}
	if length == 0 {
		return m, nil
	}
	if _, err := unix.MmapPtr(int(f.Fd()), 0, addr, length, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_FIXED); err != nil {
		unreserve(m)
		return nil, fmt.Errorf("cannot map %d bytes: %w", length, named(err))
	}
	return m, nil
}

// reserveBytes bounds the addresses that a Pool reserves.
const reserveBytes = reserveShare << 20

// FewAddresses reports whether addresses are dear, so that many pools must be
// small ones.
const FewAddresses = unsafe.Sizeof(uintptr(0)) == 4

// reserveLater maps length bytes that take no memory until they are written.
func reserveLater(length uintptr) (unsafe.Pointer, error) {
	return mmapAligned(pagesOf(length), noReserve)
}

// reserveAt is reserveLater at an address, length being that of whole pages. It
// returns nil if something else is there.
func reserveAt(at unsafe.Pointer, length uintptr) (unsafe.Pointer, error) {
	addr, err := mmap(at, length, unix.PROT_READ|unix.PROT_WRITE, noReserve|noReplace)
	switch {
	case errors.Is(err, unix.EEXIST):
		return nil, nil
	case err != nil:
		return nil, err
	case addr != at: // systems without noReplace take the address for a hint
		unreserveAt(addr, length)
		return nil, nil
	}
	return addr, nil
}

func unreserveAt(at unsafe.Pointer, length uintptr) { unix.MunmapPtr(at, length) }

// decommit gives the memory at an address back; from then on it reads as zeros.
func decommit(at unsafe.Pointer, length uintptr) {
	// If that fails, the old bytes stay until they are overwritten.
	unix.Madvise(unsafe.Slice((*byte)(at), length), unix.MADV_DONTNEED)
}
