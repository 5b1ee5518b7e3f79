package machine

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
)

// A cut has all that was applied before it, and no change half; only keys of the range, from the one that was asked for on.
func TestCut(t *testing.T) {
	r := newRig(t)
	m := r.first()
	const many = 3000
	batch := func(session, val uint64) []byte {
		b := NewBatch(false)
		for i := range many {
			b.Set(fmt.Sprintf("k%05d", i), fmt.Appendf(nil, "%d", val))
		}
		return Call{session, val, val}.Batch(b)
	}
	r.apply(m, 2, Open())
	var applied atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for val := uint64(1); ; val++ {
			select {
			case <-stop:
				return
			default:
			}
			entry := batch(2, val)
			if val%2 == 0 {
				entry = Call{2, val, val}.Clear(Span{})
			}
			if _, err := m.Apply(2+val, entry); err != nil {
				t.Error(err)
				return
			}
			applied.Store(val)
		}
	}()
	for applied.Load() == 0 {
		runtime.Gosched()
	}
	empty := 0
	for i := 0; i < 40 || empty == 0 && i < 10_000; i++ {
		least := applied.Load()
		o, ok := m.Cut("k00100")
		if !ok {
			t.Fatal("no cut")
		}
		keys, err := o.Keys()
		o.Close()
		if err != nil {
			t.Fatal(err)
		}
		vals := map[string]bool{}
		for k, v := range keys.All() {
			if k < "k00100" {
				t.Errorf("it has %s", k)
			}
			vals[string(v)] = true
		}
		n := uint64(0)
		for v := range vals {
			_, _ = fmt.Sscan(v, &n)
		}
		if keys.Len() == 0 {
			empty++
		} else if len(vals) != 1 || n < least || keys.Len() != many-100 {
			t.Fatalf("%d keys with values %v: %d was applied before", keys.Len(), vals, least)
		}
		keys.Close()
	}
	close(stop)
	<-done
	val := applied.Load() + 1
	if val%2 == 0 {
		val++
	}
	r.apply(m, 2+val, batch(2, val))
	r.apply(m, 3+val, Call{2, val + 1, 0}.Split("k00200", 2, nil))
	o, ok := m.Cut("k00100")
	if !ok || o.Bounds() != (Bounds{"k00100", "k00200"}) {
		t.Fatal(ok)
	}
	keys, err := o.Keys()
	o.Close()
	if err != nil || keys.Len() != 100 {
		t.Error(keys, err)
	}
	keys.Close()
	if _, ok := m.Cut("k00200"); ok {
		t.Error("a cut of keys that are another range's")
	}
	m.End()
	if _, ok := m.Cut("k00100"); ok {
		t.Error("a cut of a range that has ended")
	}
}
