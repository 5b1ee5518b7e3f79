package stalls

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando"
)

// Each time lies in its bucket, and percentiles are right to one part in
// bucketsPerPower.
func TestWaitTimes(t *testing.T) {
	for d := time.Duration(bucketsPerPower); d > 0 && d < time.Hour; d += d/7 + 1 {
		b := bucketOf(d)
		if end := endOf(b); d >= end || d < end-end/bucketsPerPower {
			t.Fatalf("%d is in bucket %d, which ends at %d", d, b, end)
		}
		if b > 0 && bucketOf(endOf(b-1)) != b {
			t.Fatalf("bucket %d does not begin where the one before ends", b)
		}
	}
	w := &waitTimes{}
	for i := range 10_000 {
		w.note(time.Duration(i) * time.Microsecond)
	}
	for _, c := range []struct {
		p    float64
		want time.Duration
	}{{0.999, 9990 * time.Microsecond}, {0.5, 5 * time.Millisecond}, {1, 9999 * time.Microsecond}} {
		if got := w.percentile(c.p); got < c.want-c.want/bucketsPerPower || got > c.want+c.want/bucketsPerPower {
			t.Errorf("%v of all are below %v, not %v", c.p, c.want, got)
		}
	}
	sum := &waitTimes{}
	sum.add(w)
	sum.add(w)
	if sum.count != 20_000 || sum.longest != w.longest || sum.percentile(0.5) != w.percentile(0.5) {
		t.Error("two rounds are not twice one")
	}
}

// Every method of a Tree that a program calls while others use the tree is waited for,
// or one that does the same work is.
func TestWaitsBesideEveryMethod(t *testing.T) {
	numbers, texts := numbersToWaitFor(100, 1), stringsToWaitFor(100, 1)
	besideNumbers := &waiting[uint64]{waitKeys: numbers, threads: 1}
	besideTexts := &waiting[string]{waitKeys: texts, threads: 1}
	names := ""
	for _, b := range slices.Concat(besideNumbers.besides(), numberBesides(besideNumbers), besideTexts.besides(), textBesides(besideTexts)) {
		names += " " + strings.ReplaceAll(b.name, ",", "") + " "
	}
	same := map[string]string{
		"Batcher": "GetBatch", "Close": "nothing", // after which there is nothing to wait for
		"String": "Stats",
	}
	tree := reflect.TypeFor[*pando.Tree[string, uint64]]()
	for i := range tree.NumMethod() {
		m := tree.Method(i)
		name := strings.Replace(strings.TrimSuffix(strings.TrimSuffix(m.Name, "Append"), "Packed"), "Bytes", "", 1)
		if other, ok := same[name]; ok {
			name = other
		}
		if !strings.Contains(names, " "+name+" ") {
			t.Errorf("nothing is waited for beside %s", m.Name)
		}
	}
	for _, name := range []string{"Aggregate", "AggregateBatch", "Histogram", "Select", "Transform"} {
		if !strings.Contains(names, " "+name+" ") {
			t.Errorf("nothing is waited for beside %s", name)
		}
	}
}
