package pandostore

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/disk/crash"
	"github.com/pando-index/pando/internal/seed"
)

// few is the number of keys of a history.
const few = 5

// mostUndecided is the most histories that may take porcupine too long: a history that was not
// judged is no evidence.
const mostUndecided = 2

// input is an operation of a history. n is the value that it sets.
type input struct {
	name string
	k    int
	n    int32
}

// output is what it returned: a value, 0 for none; a key; or all values.
type output struct {
	val int32
	key int
	all [few]int32
}

// model is a store as porcupine sees it. An output of nil is unknown: the store has crashed.
var model = porcupine.Model{
	Init: func() any { return [few]int32{} },
	Step: func(at, in, out any) (bool, any) {
		s, i := at.([few]int32), in.(input)
		o, known := out.(output)
		was := s[i.k]
		switch i.name {
		case "get":
			return !known || o.val == was, s
		case "swap":
			s[i.k] = i.n
			return !known || o.val == was, s
		case "set":
			s[i.k] = i.n
			return true, s
		case "add":
			s[i.k] += i.n
			return true, s
		case "all":
			return !known || o.all == s, s
		case "pop first", "pop last":
			key := -1
			for k, v := range s {
				if v != 0 && (key < 0 || i.name == "pop last") {
					key = k
				}
			}
			if key < 0 {
				return !known || o.val == 0, s
			}
			was = s[key]
			s[key] = 0
			return !known || o.val == was && o.key == key, s
		}
		panic(i.name)
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%v → %v", in, out) },
}

// recorded does a random operation.
func recorded[K pando.Key, V any](w *world[K, V], s *Store[K, V], rng *rand.Rand) (input, func() (output, error)) {
	i := input{k: rng.IntN(few), n: 1 + rng.Int32N(1000)}
	key := w.key(i.k)
	value := func(v V, had bool) output {
		if !had {
			return output{}
		}
		return output{val: w.number(v)}
	}
	switch rng.IntN(10) {
	case 0, 1:
		i.name = "get"
		return i, func() (output, error) { return value(s.Get(key)), nil }
	case 2:
		i.name = "swap"
		return i, func() (output, error) { v, had, err := s.Swap(key, w.val(i.n)); return value(v, had), err }
	case 3:
		i.name, i.n = "swap", 0
		return i, func() (output, error) { v, had, err := s.Delete(key); return value(v, had), err }
	case 4, 5:
		i.name = "set"
		return i, func() (output, error) { return output{}, s.Set(key, w.val(i.n)) }
	case 6, 7:
		i.name = "add"
		return i, func() (output, error) {
			return output{}, s.Update(key, func(old V, had bool) (V, bool) { return w.val(w.number(old) + i.n), true })
		}
	case 8:
		i.name = "all"
		return i, func() (o output, err error) {
			snap := s.Snapshot()
			defer snap.Close()
			for k, v := range snap.All() {
				o.all[w.keyOf(k)] = w.number(v)
			}
			return o, nil
		}
	}
	i.name = "pop first"
	pop := s.PopMin
	if rng.IntN(2) == 0 {
		i.name, pop = "pop last", s.PopMax
	}
	return i, func() (output, error) {
		k, v, ok, err := pop()
		if !ok || err != nil {
			return output{}, err
		}
		return output{val: w.number(v), key: w.keyOf(k)}, nil
	}
}

// Histories of several goroutines, through several crashes: all of it could have been done
// one after the other. What was under way in a crash has happened or has not.
func TestHistories(t *testing.T) {
	t.Parallel()
	histories(t, &numbers)
	histories(t, &texts)
}

func histories[K pando.Key, V any](t *testing.T, w *world[K, V]) {
	t.Run(w.name, func(t *testing.T) {
		t.Parallel()
		rng := seed.Rand(t)
		times, undecided := seed.Times(25, 500), 0
		for range times {
			fs := crash.New()
			var all []porcupine.Operation
			var clock atomic.Int64
			for life := range 3 {
				var ops []porcupine.Operation
				ops, fs = untilCrash(t, w, fs, rng, &clock, life)
				all = append(all, ops...)
			}
			switch res := porcupine.CheckOperationsTimeout(model, all, 20*time.Second); res {
			case porcupine.Unknown:
				undecided++
			case porcupine.Illegal:
				for _, op := range all {
					t.Logf("%d: %d to %d: %s", op.ClientId, op.Call, op.Return, model.DescribeOperation(op.Input, op.Output))
				}
				t.Fatalf("a history of %d operations: %v", len(all), res)
			}
			if undecided > mostUndecided {
				t.Fatalf("%d of %d histories could not be judged in their time", undecided, times)
			}
		}
		t.Logf("%d histories, %d of them could not be judged in their time", times, undecided)
	})
}

// untilCrash records a life of a store until a crash, and returns what that leaves.
func untilCrash[K pando.Key, V any](t *testing.T, w *world[K, V], fs *crash.Folder, rng *rand.Rand, clock *atomic.Int64, life int) (all []porcupine.Operation, image *crash.Folder) {
	var mu sync.Mutex
	crashed := int64(math.MaxInt64)
	at, first := fs.Calls()+15+rng.IntN(35), rng.Uint64()
	images := rand.New(rand.NewPCG(first, 99))
	fs.SetBefore(func(n int, _ string) {
		if mu.Lock(); n == at {
			crashed = clock.Add(1)
			image = fs.Image(images)
		}
		mu.Unlock()
	})
	s, err := open[K, V](fs, []Option{CheckpointAfter(3 << 10), small})
	if err != nil {
		t.Fatal(err)
	}
	const goroutines = 4
	var wg sync.WaitGroup
	for g := range goroutines {
		rng := rand.New(rand.NewPCG(first, uint64(g)))
		wg.Go(func() {
			for range 7 {
				in, do := recorded(w, s, rng)
				call := clock.Add(1)
				out, err := do()
				end := clock.Add(1)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				all = append(all, porcupine.Operation{ClientId: life*goroutines + g, Input: in, Call: call, Output: out, Return: end})
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	mu.Lock()
	if image == nil {
		crashed, image = clock.Add(1), fs.Image(images)
	}
	mu.Unlock()
	s.Close()
	kept := all[:0]
	for _, op := range all {
		if op.Call > crashed {
			continue // it never began
		}
		if op.Return > crashed {
			op.Output, op.Return = nil, math.MaxInt64-1
		}
		kept = append(kept, op)
	}
	return kept, image
}
