//go:build !noasm

package simd

import "unsafe"

// getAlone is GetRegular for a tree that nobody changes: it looks neither at the
// lock nor at the version of a leaf, nor whether a key is above it.
func getAlone[C Code](r *Regular, keys, vals []C, found []bool, again []int32) (hits int) {
	top, distance := pace[C](r, len(keys))
	get := getAloneRegular32AVX2
	switch {
	case wide[C]() && active == AVX512:
		get = getAloneRegular64AVX512
	case active == AVX512:
		get = getAloneRegular32AVX512
	case wide[C]():
		get = getAloneRegular64AVX2
	}
	hits, _ = get(bytes(r), bytes(&keys[0]), len(keys), bytes(&vals[0]), unsafe.SliceData(found), &again[0], top, distance)
	return hits
}
