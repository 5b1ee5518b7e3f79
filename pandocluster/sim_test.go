package pandocluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/disk/crash"
	"github.com/pando-index/pando/internal/seed"
)

// input is an operation of a history on one key; out is what it returned. nil is unknown.
type input struct {
	key, what string
	n         int
}

type output struct{ old int } // 0 for none

// model is a register, as porcupine sees each key.
var model = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(at, in, out any) (bool, any) {
		s, i := at.(int), in.(input)
		o, known := out.(output)
		switch i.what {
		case "get":
			return !known || o.old == s, s
		case "set":
			return true, i.n
		case "swap":
			return !known || o.old == s, i.n
		case "delete":
			return !known || o.old == s, 0
		case "add":
			return !known || o.old == s, s + i.n
		}
		panic(i.what)
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%v → %v", in, out) },
}

// history is what clients have done.
type history struct {
	clock atomic.Int64
	mu    sync.Mutex
	of    map[string][]porcupine.Operation
	n     int // operations; numbers clients, too
	known int
}

func value(n int) []byte { return []byte(strconv.Itoa(n)) }

func number(v []byte, ok bool) int {
	if !ok {
		return 0
	}
	n, _ := strconv.Atoi(string(v))
	return n
}

// do does an operation at a node, and records it.
func (h *history) do(c *computer, in input) {
	n := c.node.Load()
	if n == nil {
		time.Sleep(beat / 4)
		return
	}
	call := h.clock.Add(1)
	old, err := operate(n, in)
	back := h.clock.Add(1)
	if c.node.Load() != n { // it was killed before it could tell anybody
		err = ErrUnknown
	}
	if err != nil && (in.what == "get" || errors.Is(err, ErrUnavailable)) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n++
	op := porcupine.Operation{ClientId: h.n, Input: in, Call: call, Output: output{old}, Return: back}
	if err != nil {
		op.Output, op.Return = nil, 1<<62
	} else {
		h.known++
	}
	h.of[in.key] = append(h.of[in.key], op)
}

func operate(n *Node, in input) (old int, err error) {
	defer func() {
		if v := recover(); v != nil {
			u, ok := v.(*Unavailable)
			if !ok {
				panic(v)
			}
			err = u
		}
	}()
	keys, vals, found := []string{in.key}, [][]byte{nil}, []bool{false}
	switch in.what {
	case "get":
		n.GetBatch(keys, vals, found)
		return number(vals[0], found[0]), nil
	case "set":
		return 0, n.Apply([]pando.Op{pando.OpSet}, keys, [][]byte{value(in.n)}, nil)
	case "swap":
		vals[0] = value(in.n)
		err = n.Apply([]pando.Op{pando.OpSet}, keys, vals, found)
		return number(vals[0], found[0]), err
	case "delete":
		err = n.Apply([]pando.Op{pando.OpDelete}, keys, vals, found)
		return number(vals[0], found[0]), err
	}
	err = n.Update(in.key, func(was []byte, had bool) ([]byte, bool) {
		old = number(was, had)
		return value(old + in.n), true
	})
	return old, err
}

// judge demands that the history of each key is linearizable.
func (h *history) judge(t *testing.T) {
	for key, ops := range h.of {
		switch porcupine.CheckOperationsTimeout(model, ops, 20*time.Second) {
		case porcupine.Illegal:
			text := ""
			for _, o := range ops {
				text += fmt.Sprintf("%d to %d: %+v → %+v\n", o.Call, o.Return, o.Input, o.Output)
			}
			t.Errorf("the history of %q is not linearizable:\n%s", key, text)
		case porcupine.Unknown:
			t.Logf("the history of %q takes too long to be judged", key)
		}
	}
}

// A cluster with clients, while computers are killed, cut off, paused, slow, have disks that fail or are lost, and ranges
// split: histories are linearizable, and in the end all replicas are equal.
func TestSimulation(t *testing.T) {
	first := seed.Of(t)
	seeds := seed.Times(4, 1000)
	if n, ok := seed.Asked(); ok {
		seeds = n
	}
	begin := time.Now()
	t.Run("seeds", func(t *testing.T) {
		for i := range seeds {
			s := first + uint64(i)
			t.Run(fmt.Sprint(s), func(t *testing.T) {
				t.Parallel()
				defer func() {
					if t.Failed() {
						t.Logf("PANDO_SEED=%d", s)
					}
				}()
				synctest.Test(t, func(t *testing.T) { simulate(t, s) })
			})
		}
	})
	t.Logf("%d seeds in %v", seeds, time.Since(begin))
}

func simulate(t *testing.T, s uint64) {
	rng := rand.New(rand.NewPCG(s, 1))
	w := newWorld(t, rand.New(rand.NewPCG(s, 2)))
	w.plans = true
	defer w.close()
	names := []string{"a", "b", "c", "d"}
	for i, name := range names {
		if i == 0 {
			w.add(name)
		} else {
			w.add(name, "a")
		}
	}
	h := &history{of: map[string][]porcupine.Operation{}}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 4 {
		own := rand.New(rand.NewPCG(s, uint64(10+i)))
		clients.Go(func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Duration(own.IntN(int(beat)))):
				}
				key := string(rune('b'+own.IntN(6))) + "key"
				h.do(w.all[names[own.IntN(len(names))]], input{key, []string{"get", "get", "set", "swap", "delete", "add"}[own.IntN(6)], 1 + n*10 + i})
			}
		})
	}
	var once sync.Once
	finish := func() { once.Do(func() { close(stop) }); clients.Wait() }
	defer finish()
	if err := w.whole(2); err != nil {
		t.Fatal(err)
	}
	faults := map[string]int{}
	end := time.Now().Add(40 * time.Second)
	for time.Now().Before(end) {
		c := w.all[names[rng.IntN(len(names))]]
		d := time.Duration(1+rng.IntN(20)) * beat
		fault := []string{"kill", "kill", "kill all", "cut", "cut off", "pause", "slow", "fail", "gone", "split"}[rng.IntN(10)]
		faults[fault]++
		switch fault {
		case "kill":
			c.kill()
			time.Sleep(d)
			c.start()
		case "kill all":
			for _, name := range names {
				w.all[name].kill()
			}
			time.Sleep(d)
			for _, name := range names {
				w.all[name].start()
			}
		case "cut", "cut off":
			cut := func(is bool) {
				for i, name := range names {
					if name != c.name && (fault == "cut off" || i == int(d)%len(names)) {
						w.setCut(c.name, name, is)
					}
				}
			}
			cut(true)
			time.Sleep(d)
			cut(false)
		case "pause":
			w.pause(c.name)
			time.Sleep(d)
			w.resume(c.name)
		case "slow":
			c.slow.Store(int64(beat) / int64(1+rng.IntN(20)))
			time.Sleep(d)
			c.slow.Store(0)
		case "fail":
			n := c.node.Load()
			var hit atomic.Bool
			c.snaps.SetFail(func(int, string) crash.Fault { return crash.Fault{Err: syscall.EIO} })
			c.logs.SetFail(func(int, string) crash.Fault {
				hit.Store(true)
				return crash.Fault{Err: syscall.EIO}
			})
			time.Sleep(d)
			was := hit.Load()
			time.Sleep(beat / 10)
			if was && n.Err() == nil {
				t.Errorf("%s goes on with a disk that has failed", c.name)
			}
			c.kill()
			c.start()
		case "gone":
			// A majority of each range must be there: with two lost at once there is none.
			if err := w.whole(2); err != nil {
				t.Fatal(err)
			}
			c.wipe()
			time.Sleep(d)
			c.start()
			if err := w.whole(2); err != nil {
				t.Fatal(err)
			}
		case "split":
			ctx, cancel := context.WithTimeout(context.Background(), 20*beat)
			if n := w.some(); n != nil {
				_ = n.Do(ctx, Step{Kind: Split, Key: string(rune('b' + rng.IntN(6)))})
			}
			cancel()
		}
		time.Sleep(time.Duration(rng.IntN(10)) * beat)
	}
	if err := w.whole(2); err != nil {
		t.Fatal(err)
	}
	finish()
	for _, c := range w.all {
		for k := range 6 {
			h.do(c, input{string(rune('b'+k)) + "key", "get", 0})
		}
	}
	if err := w.agree(); err != nil {
		t.Error(err)
	}
	h.judge(t)
	p, _ := w.some().Picture(context.Background())
	t.Logf("%d operations, %d of them known, %d ranges, %v", h.n, h.known, len(p.Ranges), faults)
	if h.known < 100 {
		t.Errorf("only %d operations were answered", h.known)
	}
}
