//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import "encoding/binary"

// fakeGranule is the granularity of the fake's mapped memory; that of GPUs is 2
// MiB.
const fakeGranule = 64 << 10

// mapper is the virtual memory of the fake.
type mapper struct {
	able   int32                  // the attribute that says that there is any
	limit  int                    // bytes that can be created
	used   int                    // bytes that have been, and are not freed
	ranges map[uintptr]*addresses // by their start
	made   map[uintptr]*physical  // by handle
}

// addresses is a reserved range of the fake.
type addresses struct {
	size   int
	data   []byte             // up to the end of the last piece
	pieces map[uintptr]*piece // by offset
}

// piece is a mapping within a range.
type piece struct {
	size     int
	of       *physical
	writable bool
}

// physical is memory that was created; it is freed when it is neither mapped
// nor held.
type physical struct {
	size, mapped int
	released     bool
}

func newMapper() mapper {
	return mapper{able: 1, limit: 1024 * fakeGranule, ranges: map[uintptr]*addresses{}, made: map[uintptr]*physical{}}
}

// within returns the range that holds n bytes at p, and the offset in it.
func (m *mapper) within(p, n uintptr) (*addresses, uintptr) {
	for base, a := range m.ranges {
		if p >= base && p+n <= base+uintptr(a.size) {
			return a, p - base
		}
	}
	return nil, 0
}

// memory returns the bytes at an address if all of them are mapped and may be
// written, in however many pieces.
func (m *mapper) memory(p, n uintptr) []byte {
	a, off := m.within(p, n)
	if a == nil {
		return nil
	}
	for at := off; at < off+n; {
		var next uintptr
		for from, x := range a.pieces {
			if x.writable && from <= at && at < from+uintptr(x.size) {
				next = from + uintptr(x.size)
			}
		}
		if next == 0 {
			return nil
		}
		at = next
	}
	return a.data[off : off+n]
}

func (m *mapper) drop(x *physical) {
	if x.released && x.mapped == 0 {
		m.used -= x.size
	}
}

// word reads a field of a structure, as cuda.h places it.
func word(b []byte, offset int) int { return int(int32(binary.LittleEndian.Uint32(b[offset:]))) }

// checkProp checks a CUmemAllocationProp by its bytes in cuda.h: type at 0,
// requestedHandleTypes 4, location.type 8, location.id 12, win32HandleMetaData
// 16, allocFlags 24.
func (f *fake) checkProp(b *[32]byte, context uintptr) {
	if gpu := word(b[:], 12); word(b[:], 0) != 1 || word(b[:], 4) != 0 || word(b[:], 8) != 1 || f.contexts[gpu] != context {
		f.wrong("memory with properties %v", *b)
	}
	for _, x := range b[16:] {
		if x != 0 {
			f.wrong("memory with properties %v", *b)
		}
	}
}

func addRanges(all *[entryCount]any) {
	all[cuMemGetAllocationGranularity] = func(out *uint64, prop *[32]byte, option uintptr) uintptr {
		return serveIn(cuMemGetAllocationGranularity, func(f *fake, c uintptr) result {
			f.checkProp(prop, c)
			if option > 1 {
				f.wrong("granularity by option %d", option)
			}
			*out = fakeGranule
			return 0
		})
	}
	all[cuMemAddressReserve] = func(out *uintptr, size, align, address, flags uintptr) uintptr {
		return serveIn(cuMemAddressReserve, func(f *fake, _ uintptr) result {
			if size == 0 || size%fakeGranule != 0 || align|address|flags != 0 {
				f.wrong("reserved %d bytes, aligned to %d, at %#x, flags %d", size, align, address, flags)
				return 1
			}
			if size > 1<<46 {
				return 2
			}
			f.next += 1 << 32
			*out = f.next
			f.next += size
			f.live[*out] = thing{freedBy: cuMemAddressFree}
			f.mapper.ranges[*out] = &addresses{size: int(size), pieces: map[uintptr]*piece{}}
			return 0
		})
	}
	all[cuMemAddressFree] = func(p, size uintptr) uintptr {
		return serve(cuMemAddressFree, func(f *fake) result {
			a := f.mapper.ranges[p]
			if a == nil || a.size != int(size) || len(a.pieces) > 0 {
				f.wrong("%d addresses freed at %#x, which are no range, or in use", size, p)
				return 1
			}
			delete(f.mapper.ranges, p)
			delete(f.live, p)
			return 0
		})
	}
}

func addPhysical(all *[entryCount]any) {
	all[cuMemCreate] = func(out *uintptr, size uintptr, prop *[32]byte, flags uintptr) uintptr {
		return serveIn(cuMemCreate, func(f *fake, c uintptr) result {
			f.checkProp(prop, c)
			if size == 0 || size%fakeGranule != 0 || flags != 0 {
				f.wrong("%d bytes created, flags %d", size, flags)
				return 1
			}
			if f.mapper.used+int(size) > f.mapper.limit {
				return 2
			}
			f.mapper.used += int(size)
			f.make(0, cuMemRelease, out, nil)
			f.mapper.made[*out] = &physical{size: int(size)}
			return 0
		})
	}
	all[cuMemRelease] = func(h uintptr) uintptr {
		return serve(cuMemRelease, func(f *fake) result {
			if !f.own(h, cuMemRelease, 0) {
				return 1
			}
			x := f.mapper.made[h]
			x.released = true
			f.mapper.drop(x)
			delete(f.mapper.made, h)
			delete(f.live, h)
			return 0
		})
	}
}

// mapping is the key of a mapping among the live things: its address may be
// that of its range.
func mapping(p uintptr) uintptr { return p + 1 }

func addMapping(all *[entryCount]any) {
	all[cuMemMap] = func(p, size, offset, h, flags uintptr) uintptr {
		return serveIn(cuMemMap, func(f *fake, _ uintptr) result {
			a, off := f.mapper.within(p, size)
			x := f.mapper.made[h]
			if a == nil || x == nil || x.size != int(size) || offset|flags != 0 || off%fakeGranule != 0 {
				f.wrong("%d bytes mapped at %#x", size, p)
				return 1
			}
			for from, other := range a.pieces {
				if from < off+size && off < from+uintptr(other.size) {
					f.wrong("mapped over another piece")
				}
			}
			if end := int(off + size); end > len(a.data) {
				a.data = append(a.data, make([]byte, end-len(a.data))...)
			}
			a.pieces[off] = &piece{size: int(size), of: x}
			x.mapped++
			f.live[mapping(p)] = thing{freedBy: cuMemUnmap}
			return 0
		})
	}
	all[cuMemUnmap] = func(p, size uintptr) uintptr {
		return serve(cuMemUnmap, func(f *fake) result {
			a, off := f.mapper.within(p, size)
			if a == nil || a.pieces[off] == nil || a.pieces[off].size != int(size) {
				f.wrong("%d bytes unmapped at %#x, which is no whole piece", size, p)
				return 1
			}
			x := a.pieces[off].of
			delete(a.pieces, off)
			x.mapped--
			f.mapper.drop(x)
			delete(f.live, mapping(p))
			return 0
		})
	}
	all[cuMemSetAccess] = func(p, size uintptr, desc *[12]byte, count uintptr) uintptr {
		return serveIn(cuMemSetAccess, func(f *fake, c uintptr) result {
			a, off := f.mapper.within(p, size)
			// CUmemAccessDesc in cuda.h: location.type at 0, location.id 4, flags 8.
			if gpu := word(desc[:], 4); count != 1 || word(desc[:], 0) != 1 || f.contexts[gpu] != c || word(desc[:], 8) != 3 {
				f.wrong("access %v, %d of them", *desc, count)
			}
			if a == nil || a.pieces[off] == nil || a.pieces[off].size != int(size) {
				return 1
			}
			a.pieces[off].writable = true
			return 0
		})
	}
}
