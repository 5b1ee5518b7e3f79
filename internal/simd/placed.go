package simd

import (
	"sync/atomic"
	"unsafe"

	"github.com/pando-index/pando/internal/stall"
)

// placedAhead is the number of queries between the prefetch of a query's lines
// and their use. Both lines are known at once, so it is one wait a query.
const placedAhead = 16

// GetPlaced is GetRegular for queries whose places are known: places[i] is a
// leaf, times 256, plus the line of its block, and words[i] the word that the
// leaf had when that was the place of keys[i]. As long as the leaf has that word
// nothing of it has changed; so an answer is one of the tree's whatever the age
// of the place. The numbers of queries whose leaf has another word by now, or
// whose word says that it may not be read, are in again[:repeat]; and so are
// those of places that are none, as of a GPU whose kernel did not run.
func GetPlaced[C Code](r *Regular, keys []C, places, words []uint64, vals []C, found []bool, again []int32) (hits, repeat int) {
	_, _, _, _ = places[:len(keys)], words[:len(keys)], vals[:len(keys)], again[:len(keys)]
	for i := range min(placedAhead, len(keys)) {
		fetchPlaced[C](r, places[i], words[i])
	}
	for i, key := range keys {
		if soon := i + placedAhead; soon < len(keys) {
			fetchPlaced[C](r, places[soon], words[soon])
		}
		val, ok, valid := getPlaced(r, key, places[i], words[i])
		if !valid {
			again[repeat] = int32(i)
			repeat++
			continue
		}
		vals[i] = val
		if found != nil {
			found[i] = ok
		}
		if ok {
			hits++
		}
	}
	return hits, repeat
}

// placed returns where a place is: the pilot of its leaf, and the line.
func placed[C Code](r *Regular, place uint64) (pilot, line unsafe.Pointer) {
	leaf := uintptr(place >> 8)
	pilot = unsafe.Add(r.Pilots, leaf*uintptr(RegularPilot[C]()))
	return pilot, unsafe.Add(r.Blocks, leaf*RegularBlock+uintptr(place&(RegularFanout-1))*LineBytes)
}

// follows reports whether a place may be followed. A word of 0 is that of memory
// that no leaf was ever in.
func follows(r *Regular, place, word uint64) bool {
	return word&WordBusy == 0 && word != 0 && place>>8 < r.Leaves
}

// fetchPlaced prefetches the lines that a query reads.
func fetchPlaced[C Code](r *Regular, place, word uint64) {
	if !follows(r, place, word) {
		return
	}
	pilot, line := placed[C](r, place)
	Fetch(pilot, 1)
	Fetch(line, 1)
}

// getPlaced answers one query of GetPlaced.
func getPlaced[C Code](r *Regular, key C, place, word uint64) (val C, ok, valid bool) {
	if !follows(r, place, word) { // nothing is known: the place may be anything
		return 0, false, false
	}
	pilot, line := placed[C](r, place)
	if atomic.LoadUint64(RegularWord(pilot)) != word {
		return 0, false, false
	}
	stall.At("get placed: word read")
	val, ok = regularPair(line, key)
	stall.At("get placed: value read")
	return val, ok, atomic.LoadUint64(RegularWord(pilot)) == word
}
