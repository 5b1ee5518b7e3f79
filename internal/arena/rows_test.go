package arena

import (
	"math/rand/v2"
	"testing"
	"unsafe"
)

// Rows never overlap, read as zeros when they are taken, and are joined again when all
// are given back: then the longest there was can be taken without more addresses.
func TestRows(t *testing.T) {
	const seed = 7
	rnd := rand.New(rand.NewPCG(seed, 1))
	r := &Rows{Pool: NewPoolOf(1<<12, 1, 4096)}
	type row struct{ chunk, n int }
	var all []row
	owner := map[int]bool{}
	give := func(i int) {
		x := all[i]
		for c := x.chunk; c < x.chunk+x.n; c++ {
			delete(owner, c)
		}
		r.Give(x.chunk, x.n)
		all[i] = all[len(all)-1]
		all = all[:len(all)-1]
	}
	for range 20_000 {
		if len(all) > 0 && rnd.IntN(16) < 7 {
			give(rnd.IntN(len(all)))
			continue
		}
		n := 1 + rnd.IntN(1<<rnd.IntN(6))
		chunk, err := r.Take(n)
		if err != nil { // as full as addresses allow
			for range len(all) / 2 {
				give(rnd.IntN(len(all)))
			}
			continue
		}
		mem := unsafe.Slice((*byte)(unsafe.Add(r.Pool.Base(0), chunk*4096)), n*4096)
		for c := range n {
			if owner[chunk+c] || mem[c*4096] != 0 || mem[c*4096+4095] != 0 {
				t.Fatalf("chunk %d is another's", chunk+c)
			}
			owner[chunk+c], mem[c*4096], mem[c*4096+4095] = true, 1, 1
		}
		all = append(all, row{chunk, n})
	}
	for len(all) > 0 {
		give(0)
	}
	if n := r.Pool.Taken(); n != 0 {
		t.Errorf("%d chunks are taken, all were given back", n)
	}
	for k, list := range r.free {
		if most := 1 << 12 >> k; len(list) > 2*most+65 || r.count[k] < 0 {
			t.Errorf("%d rows of order %d are listed, %d can be free", len(list), k, most)
		}
	}
	next := r.Pool.next
	if _, err := r.Take(next/2 + 1); next >= 1<<11 && err != nil {
		t.Error(err)
	}
	if _, err := r.Take(1 << rowOrders); err == nil {
		t.Error("a row longer than there can be was taken")
	}
}

// A row that a test denies takes nothing.
func TestRowsDenied(t *testing.T) {
	r := &Rows{Pool: NewPoolOf(64, 1, 4096)}
	r.Pool.Deny(func() bool { return true })
	if _, err := r.Take(3); err == nil || r.Pool.Taken() != 0 {
		t.Errorf("%v, %d chunks taken", err, r.Pool.Taken())
	}
	r.Pool.Deny(nil)
	if _, err := r.Take(3); err != nil {
		t.Error(err)
	}
}
