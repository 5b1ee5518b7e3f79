package simd

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

// Readers never see half of a change: while leaves are laid out anew, over
// another number of lines each time and with values of the next version, each
// key is found or asked for again, with the value of a version that is not
// older than one seen before.
func TestRegularReadersSeeWholeChanges(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, wholeChanges[uint32], wholeChanges[uint64])
	})
}

// versioned is a tree whose values are their key plus a version.
type versioned[C Code] struct {
	*grown[C]
	keys  [][]C         // of each leaf
	stop  atomic.Bool   // the writer has stopped
	valid atomic.Uint64 // answers that were not to be repeated
}

func wholeChanges[C Code](t *testing.T) {
	rng := seed.Rand(t)
	v := &versioned[C]{grown: grow[C]([]int{2, 1, 3}, 1000, rng, alignedWords)}
	for i, l := range v.leaves {
		v.keys = append(v.keys, slices.Sorted(maps.Keys(l.vals)))
		v.lay(i, 0, v.pilot(l.number), v.block(l.number), rng)
		*RegularWord(v.pilot(l.number)) = NextWord(0, len(l.vals))
	}
	var wg sync.WaitGroup
	for range 3 {
		seed := rng.Uint64()
		wg.Go(func() {
			if err := v.read(rand.New(rand.NewPCG(seed, 2))); err != nil {
				t.Error(err)
			}
		})
	}
	if err := v.write(rng, 150*time.Millisecond); err != nil {
		t.Error(err)
	}
	v.stop.Store(true)
	wg.Wait()
	if v.valid.Load() == 0 {
		t.Error("no reader has got an answer")
	}
}

// lay writes a version of a leaf.
func (v *versioned[C]) lay(i, version int, pilot, block unsafe.Pointer, rng *rand.Rand) {
	fillLeaf(pilot, block, v.keys[i], v.leaves[i].bound, func(k C) C { return k + C(version) }, rng)
}

// write commits new versions of the leaves, whole pilots and blocks.
func (v *versioned[C]) write(rng *rand.Rand, duration time.Duration) error {
	var epoch, gen uint64
	pilots, blocks := alignedWords(RegularPilot[C]()/8), alignedWords(RegularBlock/8)
	pilot, block := unsafe.Pointer(&pilots[0]), unsafe.Pointer(&blocks[0])
	for version, start := 1, time.Now(); version < 1<<15 && time.Since(start) < duration; version++ {
		for i, l := range v.leaves {
			at := v.pilot(l.number)
			word := atomic.LoadUint64(RegularWord(at))
			v.lay(i, version, pilot, block, rng)
			*RegularWord(pilot) = word | WordLocked // the line that is copied holds the word
			c := Change{
				Word: RegularWord(at), Was: word, Will: NextWord(word, len(v.keys[i])), Epoch: &epoch, Gen: &gen,
				Dst: [3]unsafe.Pointer{at, v.block(l.number)}, Src: [3]unsafe.Pointer{pilot, block},
				Lines: [3]int{RegularPilot[C]() / LineBytes, RegularFanout},
			}
			if !Commit(&c) {
				return fmt.Errorf("version %d of leaf %d could not be committed", version, i)
			}
		}
	}
	return nil
}

// read asks for random keys until the writer has stopped.
func (v *versioned[C]) read(rng *rand.Rand) error {
	seen := map[C]C{} // versions
	for !v.stop.Load() {
		keys := make([]C, 1+rng.IntN(200))
		for j := range keys {
			leaf := v.keys[rng.IntN(len(v.keys))]
			keys[j] = leaf[rng.IntN(len(leaf))]
		}
		vals, found, again := make([]C, len(keys)), make([]bool, len(keys)), make([]int32, len(keys))
		_, repeat := GetRegular(&v.Regular, keys, vals, found, again)
		v.valid.Add(uint64(len(keys) - repeat))
		again = again[:repeat]
		for j, k := range keys {
			if len(again) > 0 && again[0] == int32(j) {
				again = again[1:]
				continue
			}
			version := vals[j] - k
			if !found[j] || version >= 1<<15 || version < seen[k] {
				return fmt.Errorf("key %d: found %v, version %d after version %d", k, found[j], version, seen[k])
			}
			seen[k] = version
		}
	}
	return nil
}
