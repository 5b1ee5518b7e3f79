package twin

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/cuart"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/packing"
	"github.com/pando-index/pando/internal/radix"
	"github.com/pando-index/pando/internal/seed"
)

// besides is one of several goroutines that use a twin. Nobody else has its keys.
type besides struct {
	t     *testing.T
	f     *Strings
	rng   *rand.Rand
	name  string
	model map[string]uint64
}

func (x *besides) key() string {
	if x.rng.IntN(15) == 0 {
		most := []int{packing.Longest, cuart.MaxKey}[x.rng.IntN(2)] // the first are on the GPU, the others in host memory alone
		return x.name + strings.Repeat("long", most/4+x.rng.IntN(2)) + fmt.Sprint(x.rng.IntN(3))
	}
	return x.name + fmt.Sprint(x.rng.IntN(60))
}

func (x *besides) keys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = x.key()
	}
	return keys
}

func (x *besides) step() {
	switch x.rng.IntN(6) {
	case 0:
		k, v, del := x.key(), x.rng.Uint64(), x.rng.IntN(3) == 0
		if x.model[k] = v; del {
			x.f.Delete(k)
			delete(x.model, k)
		} else {
			x.f.Set(k, v)
		}
	case 1, 2, 3:
		x.batch(x.keys(1 + x.rng.IntN(40)))
	case 4:
		for range 10 {
			k := x.key()
			want, had := x.model[k]
			if v, ok := x.f.Get(k); v != want || ok != had {
				x.t.Errorf("%.20q has %d, %t; want %d, %t", k, v, ok, want, had)
			}
		}
	case 5:
		x.find(x.keys(1 + x.rng.IntN(40)))
	}
}

// batch does operations, and compares what they have found.
func (x *besides) batch(keys []string) {
	n := len(keys)
	vals, kinds, found := make([]uint64, n), make([]op.Kind, n), make([]bool, n)
	for i := range keys {
		vals[i], kinds[i] = x.rng.Uint64(), op.Kind(x.rng.IntN(3))
	}
	set := slices.Clone(vals)
	if err := x.f.Apply(&StringBatch{Keys: keys, Vals: arena.Bytes(vals), Kinds: kinds, Old: arena.Bytes(vals), Found: found}); err != nil {
		x.t.Error(err)
	}
	for i, k := range keys {
		if want, had := x.model[k]; found[i] != had || vals[i] != want {
			x.t.Errorf("operation %d of %d, on %.20q, has found %d, %t; want %d, %t", i, n, k, vals[i], found[i], want, had)
		}
		switch kinds[i] {
		case op.Set:
			x.model[k] = set[i]
		case op.Delete:
			delete(x.model, k)
		}
	}
}

// find looks keys up, as the index does.
func (x *besides) find(keys []string) {
	var mu sync.Mutex
	vals, found := make([]uint64, len(keys)), make([]bool, len(keys))
	ok := x.f.Find(cuart.Queries{
		Keys: packing.Strings{Keys: keys},
		Take: func(lo int, column, bits []byte) {
			mu.Lock()
			defer mu.Unlock()
			for i, v := range arena.As[uint64](column) {
				vals[lo+i], found[lo+i] = v, bits[i/8]>>(i%8)&1 == 1
			}
		},
		CPU: func(lo, hi int) {
			mu.Lock()
			defer mu.Unlock()
			for i := lo; i < hi; i++ {
				vals[i], found[i] = x.f.Get(keys[i])
			}
		},
	})
	if !ok {
		x.f.Wait()
		x.f.cpu.GetBatch(keys, vals, found, 1, nil)
	}
	for i, k := range keys {
		if want, had := x.model[k]; vals[i] != want || found[i] != had {
			x.t.Errorf("%.20q has %d, %t in a search (%t); want %d, %t", k, vals[i], found[i], ok, want, had)
		}
	}
}

// Each goroutine finds what it has done itself, whatever others do, also where the
// device fails, or is closed, amid everything.
func TestStringsBesideOthers(t *testing.T) {
	first := seed.Of(t)
	for i := range uint64(seed.Count(6)) {
		rng := rand.New(rand.NewPCG(first+i, 9))
		plan := faulty.Plan{}
		if i%2 == 1 {
			plan = faulty.Plan{At: 100 + rng.IntN(2000), Lose: rng.IntN(2) == 0}
		}
		dev := faulty.New(ptx.New(ptx.Seed(first+i)), plan)
		cpu := radix.New(0)
		opts := StringsOptions{Workers: 2, ValBits: 64, Room: 64 << 20, Notes: 1 + rng.IntN(20), Changes: rng.IntN(20)}
		if rng.IntN(2) == 0 {
			opts.Log = 3 * leastLocked
		}
		if rng.IntN(2) == 0 { // leaves may have to move to host memory
			opts.Room, opts.HostRoom = 6<<10+rng.Int64N(8<<10), 1<<20
		}
		f, err := NewStrings(cpu, dev, opts)
		if err != nil {
			continue
		}
		f.piece = 1 + rng.IntN(9)
		var wg sync.WaitGroup
		all := make([]*besides, 3)
		for w := range all {
			all[w] = &besides{t, f, rand.New(rand.NewPCG(first+i, 10+uint64(w))), fmt.Sprint("of ", w, ": "), map[string]uint64{}}
			wg.Go(func() {
				for range 25 {
					all[w].step()
				}
				if w == 0 && i%4 == 2 {
					f.Close()
				}
			})
		}
		wg.Wait()
		f.Wait()
		n := 0
		for _, x := range all {
			for k, want := range x.model {
				if v, ok := cpu.Get(k); v != want || !ok {
					t.Errorf("%.20q has %d, %t in host memory; want %d", k, v, ok, want)
				}
			}
			n += len(x.model)
		}
		if f.Len() != n || cpu.Len() != n {
			t.Errorf("%d entries, %d in host memory, want %d", f.Len(), cpu.Len(), n)
		}
		if err := f.Check(); err != nil && plan.At == 0 {
			t.Error(err)
		}
		if down := f.Down(); down != nil && plan.At == 0 && !f.closed && !short(down) {
			t.Error(down)
		}
		f.Close()
		cpu.Close()
		if live := dev.Live(); live != 0 {
			t.Errorf("%d things are left on the device", live)
		}
		if t.Failed() {
			t.Fatalf("PANDO_SEED=%d", first+i)
		}
	}
}
