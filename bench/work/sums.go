package work

import (
	"fmt"
	"math"

	"github.com/pando-index/pando"
)

// ColReads is gigabytes of memory that a row reads in a second: of a column of
// values 8 bytes an entry, of pairs 16, of a Tree what its leaves take.
const ColReads = "reads GB/s"

// EveryKey is the range of all keys.
const EveryKey = math.MaxUint64

// NamePlain is the row of a loop over a slice.
const NamePlain = "values read by plain Go"

// CheckSum compares a sum with that of a plain loop: floats, which are added in
// another order, within a few of their last bits.
func CheckSum[V pando.Number](count, n int, got, want V) error {
	off := math.Abs(float64(got) - float64(want))
	if integer := V(1)/2 == 0; count != n || integer && got != want || off > 1e-9*math.Abs(float64(want)) {
		return fmt.Errorf("%d values with the sum %v, want %d with %v", count, got, n, want)
	}
	return nil
}

// LoopSum returns the sum of values.
func LoopSum[V pando.Number](vals []V) (sum V) {
	for _, v := range vals {
		sum += v
	}
	return sum
}

// ReadAll adds values up in eight sums on several threads, so that no addition
// waits for another: about as fast as plain Go reads memory.
func ReadAll[V pando.Number](vals []V, threads int) (sum V) {
	parts := make([]V, threads)
	done := make(chan bool, threads)
	for t := range threads {
		go func() {
			parts[t] = readPart(vals[t*len(vals)/threads : (t+1)*len(vals)/threads])
			done <- true
		}()
	}
	for range threads {
		<-done
	}
	return LoopSum(parts)
}

func readPart[V pando.Number](vals []V) V {
	var a, b, c, d, e, f, g, h V
	for ; len(vals) >= 8; vals = vals[8:] {
		v := vals[:8]
		a, b, c, d = a+v[0], b+v[1], c+v[2], d+v[3]
		e, f, g, h = e+v[4], f+v[5], g+v[6], h+v[7]
	}
	return ((a + b) + (c + d)) + ((e + f) + (g + h)) + LoopSum(vals)
}
