//go:build noasm || !amd64

package simd

// getAlone is GetRegular: there is no other in plain Go.
func getAlone[C Code](r *Regular, keys, vals []C, found []bool, again []int32) (hits int) {
	hits, _ = GetRegular(r, keys, vals, found, again)
	return hits
}
