package simd

import "unsafe"

// UnpackRegular copies the entries of a leaf of a regular tree in key order to
// keys, unless that is nil, and vals, and returns how many there are. low is the
// key that all of the leaf's are above, where bounded is true. Of a leaf that
// changes meanwhile it returns garbage, but not more entries than a leaf has.
// keys and vals must be RegularRoom long: places behind the entries are written
// over.
func UnpackRegular[C Code](pilot, block unsafe.Pointer, low C, bounded bool, keys, vals []C) (n int) {
	return UnpackLines(pilot, block, low, bounded, 0, RegularFanout, keys, vals)
}

// UnpackLines is UnpackRegular for lines [first, end) of a leaf, at least one.
// keys and vals must have UnpackRoom for these.
func UnpackLines[C Code](pilot, block unsafe.Pointer, low C, bounded bool, first, end int, keys, vals []C) (n int) {
	room := UnpackRoom[C](end - first)
	_ = vals[:room]
	if keys != nil {
		_ = keys[:room]
	}
	seps := RegularSeps[C](pilot)
	if first == 0 {
		n = unpackLine(block, low, bounded, seps[0], keys, vals)
		first = 1
	}
	if active == Go || interrupted {
		for j := first; j < end; j++ {
			var ks []C
			if keys != nil {
				ks = keys[n:]
			}
			n += unpackLine(unsafe.Add(block, j*LineBytes), seps[j-1], true, seps[j], ks, vals[n:])
		}
		return n
	}
	if first == end {
		return n
	}
	var ks *byte
	if keys != nil {
		ks = bytes(&keys[n])
	}
	return n + unpackLeafAsm(wide[C](), bytes(&seps[first]), (*byte)(unsafe.Add(block, first*LineBytes)), end-first, ks, bytes(&vals[n]))
}

// RegularRoom returns the length of slices that the entries of a leaf are copied
// to.
func RegularRoom[C Code]() int { return UnpackRoom[C](RegularFanout) }

// UnpackRoom returns the length of slices that the entries of the given lines
// are copied to: theirs, and a line more.
func UnpackRoom[C Code](lines int) int { return (lines + 1) * LineBytes / 2 / int(unsafe.Sizeof(C(0))) }

// unpackLine copies the entries of one line whose keys are above lo, where
// bounded is true, and at most hi.
func unpackLine[C Code](line unsafe.Pointer, lo C, bounded bool, hi C, keys, vals []C) (n int) {
	half := LineBytes / 2 / int(unsafe.Sizeof(lo))
	pairs := unsafe.Slice((*C)(line), 2*half)
	if bounded && pairs[0] <= lo || pairs[0] > hi {
		return 0
	}
	for i := range half {
		if i > 0 && pairs[i] == pairs[i-1] {
			continue
		}
		if keys != nil {
			keys[n] = pairs[i]
		}
		vals[n] = pairs[half+i]
		n++
	}
	return n
}

// CopyHalves copies half lines, one behind the other, to dst: 32 bytes of each
// line, which in the first of them are at src.
func CopyHalves(dst []byte, src unsafe.Pointer) {
	const half, most = LineBytes / 2, 256 // lines in one go: 16 KiB, so that nobody waits for long
	lines := len(dst) / half
	if active == Go {
		for ; lines > 0; lines-- {
			*(*[half]byte)(unsafe.Pointer(unsafe.SliceData(dst))) = *(*[half]byte)(src)
			dst, src = dst[half:], unsafe.Add(src, LineBytes)
		}
		return
	}
	for lines > 0 {
		n := min(lines, most)
		copyHalvesAsm(&dst[0], (*byte)(src), n)
		if lines -= n; lines > 0 {
			dst, src = dst[n*half:], unsafe.Add(src, n*LineBytes)
		}
	}
}
