package arena

import (
	"fmt"
	"io"
	"math"
	"os"
	"unsafe"
)

// Part is a part of a file that becomes a segment. Parts follow one another,
// each at a multiple of Align.
type Part struct{ Offset, Size int }

// Map makes a read-only block of the first length bytes of a file, without
// reading them: the system loads them as they are touched. The file may be
// closed, renamed or removed afterwards. It must not be truncated: touching a
// part that is gone is a fault that ends the program.
//
// slack more bytes stay readable after the file, as zeros. The block does not
// count in InUse, since its memory is the system's cache of the file.
//
// On systems without mmap the file is read into memory, which then counts
// against limit as in New.
func Map(f *os.File, length int64, parts []Part, slack int, limit int64) (*Block, error) {
	if err := checkParts(length, parts, slack); err != nil {
		return nil, err
	}
	total := length + int64(slack)
	prepare(0, total)
	m, err := orCollect(total, func() (*mapping, error) { return mapFile(f, uintptr(length), uintptr(slack), limit) })
	if err != nil {
		return nil, err
	}
	return blockOf(m, length, parts), nil
}

// Load makes a block like that of Map by reading the bytes of a file from r,
// which need not be a file. Its memory counts in InUse and against limit.
func Load(r io.Reader, length int64, parts []Part, slack int, limit int64) (*Block, error) {
	if err := checkParts(length, parts, slack); err != nil {
		return nil, err
	}
	m, err := readAll(r, uintptr(length), uintptr(slack), limit)
	if err != nil {
		return nil, err
	}
	return blockOf(m, length, parts), nil
}

func checkParts(length int64, parts []Part, slack int) error {
	if length < 0 || length > math.MaxInt/4 || slack < 0 || slack > math.MaxInt/4 {
		return fmt.Errorf("%w: more than a machine can address", ErrLimit)
	}
	for _, p := range parts {
		if p.Offset < 0 || p.Size < 0 || p.Offset%Align != 0 || int64(p.Offset) > length || int64(p.Size) > length-int64(p.Offset) {
			return fmt.Errorf("bytes %d to %d of a file of %d", p.Offset, p.Offset+p.Size, length)
		}
	}
	return nil
}

// blockOf makes a block of memory that holds a file.
func blockOf(m *mapping, length int64, parts []Part) *Block {
	b := &Block{pages: Small, bytes: length, mem: m}
	part := func(offset, size int) []byte { return unsafe.Slice((*byte)(unsafe.Add(m.addr, offset)), size) }
	for _, p := range parts { // an empty part has an address too
		b.segments = append(b.segments, part(p.Offset, p.Size))
	}
	if len(parts) > 0 {
		b.memory = part(parts[0].Offset, int(length)-parts[0].Offset)
	}
	add(b)
	return b
}

// readFile reads a file into allocated memory, for systems that cannot map it.
func readFile(f *os.File, length, slack uintptr, limit int64) (*mapping, error) {
	return readAll(io.NewSectionReader(f, 0, int64(length)), length, slack, limit)
}

// readAll reads length bytes into allocated memory.
func readAll(r io.Reader, length, slack uintptr, limit int64) (*mapping, error) {
	total := (int64(length) + 4095) &^ 4095
	if limit > 0 && total > limit {
		return nil, fmt.Errorf("%w: needs %d bytes, the limit is %d", ErrLimit, total, limit)
	}
	m, err := leaving(total+int64(slack), func() (*mapping, error) { return reserve(uintptr(total)+slack, Small) })
	if err != nil {
		return nil, fmt.Errorf("cannot take %d bytes: %w", total, err)
	}
	if _, err := io.ReadFull(r, unsafe.Slice((*byte)(m.addr), length)); err != nil {
		unreserve(m)
		return nil, err
	}
	m.bytes.Store(total)
	count(total)
	return m, nil
}
