package simd

import "unsafe"

// PackRegular spreads entries in key order evenly over the lines of a leaf: entry
// i of n goes to line i·64/n. It sets the separators as well, the last one to
// high, and returns which lines are full: bit j is line j. There must be an entry
// for each line at least, and not more than a leaf has room for.
func PackRegular[C Code](pilot, block unsafe.Pointer, keys, vals []C, high C) (full uint64) {
	n, half, seps := len(keys), LineBytes/2/int(unsafe.Sizeof(high)), RegularSeps[C](pilot)
	if n < RegularFanout || n > RegularFanout*half || len(vals) != n {
		panic("simd: not the entries of a leaf")
	}
	if active == Go || cap(keys) < n+half || cap(vals) < n+half { // the assembly reads whole lines
		full = packRegularGo(seps, block, keys, vals)
	} else {
		full = packRegularAsm(wide[C](), bytes(&seps[0]), (*byte)(block), bytes(&keys[0]), bytes(&vals[0]), n)
	}
	seps[RegularFanout-1] = high
	return full
}

// packRegularGo is PackRegular in plain Go, but for the last separator.
func packRegularGo[C Code](seps *[RegularFanout]C, block unsafe.Pointer, keys, vals []C) (full uint64) {
	from, half := 0, LineBytes/2/int(unsafe.Sizeof(seps[0]))
	for j := range RegularFanout {
		to := (j + 1) * len(keys) / RegularFanout
		line := unsafe.Slice((*C)(unsafe.Add(block, j*LineBytes)), 2*half)
		for i := range half {
			at := min(from+i, to-1)
			line[i], line[half+i] = keys[at], vals[at]
		}
		if to-from == half {
			full |= 1 << j
		}
		seps[j], from = keys[to-1], to
	}
	return full
}
