package arena

import (
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	noReserve = unix.MAP_NORESERVE
	noReplace = unix.MAP_FIXED_NOREPLACE
)

// adviseHuge requests huge pages for the first length bytes. If the system has
// none, the memory stays on small pages.
func adviseHuge(m *mapping, length uintptr) {
	if m.huge1G || length == 0 {
		return
	}
	unix.Madvise(unsafe.Slice((*byte)(m.addr), min(length, m.length)), unix.MADV_HUGEPAGE)
}

const gigabyte = 1 << 30

// reserve1G maps the block on 1 GiB pages. It returns nil if the system has
// not reserved enough of them or if they would be mostly empty.
func reserve1G(length uintptr) *mapping {
	if length < gigabyte/4*3 {
		return nil
	}
	length = (length + gigabyte - 1) &^ (gigabyte - 1)
	if free1G() < int(length/gigabyte) {
		return nil
	}
	addr, err := mmap(nil, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_HUGETLB|unix.MAP_HUGE_1GB)
	if err != nil {
		return nil
	}
	return &mapping{addr: addr, length: length, huge1G: true}
}

func free1G() int {
	n, err := strconv.Atoi(strings.TrimSpace(textOf("/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages")))
	if err != nil {
		return 0
	}
	return n
}
