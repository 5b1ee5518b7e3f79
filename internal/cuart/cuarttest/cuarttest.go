// Package cuarttest has keys that are hard on a radix tree of strings, and a device that weighs
// what travels to it. Only tests import it.
package cuarttest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/pando-index/pando/internal/device"
)

// Lengths are those around the words and units that keys are looked at in.
var Lengths = []int{0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 66, 200, 244, 245, 255, 256, 257, 1000}

// RandomKey returns a key of one of some kinds: with many that begin as others do,
// that are prefixes of others, and with all bytes.
func RandomKey(rng *rand.Rand, kind int) string {
	switch kind % 7 {
	case 0: // few letters, so that keys are prefixes of others
		return strings.Repeat("\x00", rng.IntN(3)) + strings.Repeat("\xff", rng.IntN(3)) + "ab"[:rng.IntN(3)]
	case 1: // a node with many children, behind a long path
		return "https://www.example.com/a/path/that/all/have/in/common/and/is/longer/than/what/is/hashed/" + string([]byte{byte(rng.Uint32())}) + strings.Repeat("x", rng.IntN(2))
	case 2:
		b := make([]byte, 8)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return string(b)
	case 3:
		return fmt.Sprintf("https://host%d.example/%d/%d", rng.IntN(5), rng.IntN(9), rng.IntN(300))
	case 4: // all lengths of one letter: each is a prefix of all longer ones
		return strings.Repeat("a", Lengths[rng.IntN(len(Lengths))])
	case 5: // two letters apart somewhere in a long run
		n := Lengths[rng.IntN(len(Lengths))]
		b := []byte(strings.Repeat("m", n))
		if n > 0 {
			b[rng.IntN(n)] = []byte{0, 'm', 255}[rng.IntN(3)]
		}
		return string(b)
	}
	return fmt.Sprintf("%032x", rng.Uint64N(2000))
}

// Scale is a device that weighs what travels to it.
type Scale struct {
	device.Device
	In atomic.Int64 // bytes
}

func (s *Scale) NewStream() (device.Stream, error) {
	st, err := s.Device.NewStream()
	return &weighed{st, s}, err
}

type weighed struct {
	device.Stream
	scale *Scale
}

func (w *weighed) CopyIn(to device.Ptr, from []byte) error {
	w.scale.In.Add(int64(len(from)))
	return w.Stream.CopyIn(to, from)
}
