package simd

import "unsafe"

// MergeRoom is memory that MergeRegular works in. The assembly finds the fields at
// fixed offsets; merge_test.go compares the sizes.
type MergeRoom[C Code] struct {
	keys, vals [mergeRow]C // pairs whose keys are new, one behind the other
	flags      [1024]byte  // for each entry of the result, whether it is one of these
	pivots     [32]C       // the last key of each line that the entries fill
	spare      [8]C        // gets the values that replace none
}

const (
	mergeMost = 512            // pairs that the assembly takes
	mergeRow  = mergeMost + 16 // and a line more
)

// MergeRegular merges the entries of a leaf with pairs, both in key order and without
// a key twice, into keys and vals, and returns how many there are. Where both have a
// key, the pair's value counts. The entries' own memory is changed. keys and vals
// must have room for all, and a line more.
func MergeRegular[C Code](keys, vals, have, haveVals, put, putVals []C, room *MergeRoom[C]) int {
	n, m, line := len(have), len(put), LineBytes/int(unsafe.Sizeof(C(0)))
	_, _, _, _ = keys[:n+m+line], vals[:n+m+line], haveVals[:n], putVals[:m]
	if !merges || active != AVX512 || m == 0 || m > mergeMost || n > RegularFanout*line/2 || cap(have) < n+line || cap(haveVals) < n+line {
		return mergeRegularGo(keys, vals, have, haveVals, put, putVals)
	}
	have, haveVals = have[:1], haveVals[:1]
	return mergeRegularAsm(wide[C](), bytes(&keys[0]), bytes(&vals[0]), bytes(&have[0]), bytes(&haveVals[0]), n, bytes(&put[0]), bytes(&putVals[0]), m, bytes(room))
}

// mergeRegularGo is MergeRegular in plain Go.
func mergeRegularGo[C Code](keys, vals, have, haveVals, put, putVals []C) (n int) {
	at := 0
	for i, key := range put {
		for at < len(have) && have[at] < key {
			keys[n], vals[n] = have[at], haveVals[at]
			n, at = n+1, at+1
		}
		if at < len(have) && have[at] == key {
			at++
		}
		keys[n], vals[n] = key, putVals[i]
		n++
	}
	copy(vals[n:], haveVals[at:len(have)])
	return n + copy(keys[n:], have[at:])
}
