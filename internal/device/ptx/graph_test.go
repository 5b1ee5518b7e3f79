package ptx

import (
	"errors"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/seed"
)

func (r *rig) graph(chain func(device.Stream) error) device.Graph {
	r.Helper()
	g, err := r.dev.NewGraph(chain)
	r.must(err)
	return g
}

// TestGraphReplays tests that a graph of 10 launches, with a fill and copies,
// that is started 100 times does what 1000 launches do, under any schedule.
func TestGraphReplays(t *testing.T) {
	for seed := range uint64(seed.Times(4, 10)) {
		r := newRig(t, Seed(seed), Concurrent(seed%2 == 1))
		add := r.load(program(2, addBody))("k")
		p, q := r.alloc32(make([]uint32, 12)), r.alloc32(make([]uint32, 12))
		out, err := r.dev.HostAlloc(48)
		r.must(err)
		pass := func(p device.Ptr) func(device.Stream) error {
			return func(s device.Stream) error {
				args := make([]byte, 16)
				for i := range 10 {
					copy(args, pack(p+device.Ptr(4*i), uint64(i)))
					if err := s.Launch(add, one(1), args); err != nil {
						return err
					}
					clear(args) // it is read before Launch returns
				}
				return errors.Join(s.CopyDevice(p+40, p+36, 4), s.Fill(p+44, 7, 4))
			}
		}
		g := r.graph(func(s device.Stream) error { return errors.Join(pass(p)(s), s.CopyOut(out, p)) })
		if got := r.read32(p, 12); slices.Max(got) != 0 {
			t.Fatalf("recording has run the chain: %v", got)
		}
		for range 100 {
			r.must(r.s.Start(g))
			r.must(pass(q)(r.s))
		}
		want := r.read32(q, 12)
		if got := r.read32(p, 12); !slices.Equal(got, want) || got[9] != 900 || got[10] != 900 || got[11] != 7 {
			t.Fatalf("seed %d: %v, want %v", seed, got, want)
		}
		if !slices.Equal(bytes32(want), out) {
			t.Fatalf("seed %d: copied out: %v", seed, out)
		}
		r.must(g.Close())
	}
}

// TestGraphRules tests what is refused when a graph is recorded, and when it is
// started.
func TestGraphRules(t *testing.T) {
	r := newRig(t)
	m, err := r.dev.Load(program(2, addBody))
	r.must(err)
	add, err := m.Kernel("k")
	r.must(err)
	p := r.alloc32([]uint32{1})
	ev, err := r.dev.NewEvent()
	r.must(err)
	pinned, err := r.dev.HostAlloc(16)
	r.must(err)
	g := r.graph(func(s device.Stream) error {
		return errors.Join(s.CopyIn(p, pinned[4:8]), s.Launch(add, one(1), pack(p, uint64(1))))
	})
	var kept device.Stream
	for name, chain := range map[string]func(device.Stream) error{
		"synchronize": device.Stream.Synchronize,
		"close":       device.Stream.Close,
		"record":      func(s device.Stream) error { return s.Record(ev) },
		"wait":        func(s device.Stream) error { return s.Wait(ev) },
		"a graph":     func(s device.Stream) error { return s.Start(g) },
		"no kernel":   func(s device.Stream) error { return s.Launch(nil, one(1), nil) },
		"parameters":  func(s device.Stream) error { return s.Launch(add, one(1), nil) },
		"fill":        func(s device.Stream) error { return s.Fill(p, 1, 3) },
		"copy":        func(s device.Stream) error { return s.CopyDevice(p, p, -1) },
		"heap":        func(s device.Stream) error { return s.CopyIn(p, make([]byte, 4)) },
		"own error":   func(s device.Stream) error { kept = s; return errors.New("own") },
	} {
		if _, err := r.dev.NewGraph(chain); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if kept.Fill(p, 1, 4) == nil {
		t.Error("a chain goes on after it has returned")
	}
	other := newRig(t)
	if other.s.Start(g) == nil || r.s.Start(nil) == nil {
		t.Error("a strange graph was started")
	}
	r.must(r.s.Start(g))
	r.must(r.s.Synchronize())
	freed, err := r.dev.HostAlloc(4)
	r.must(err)
	stale := r.graph(func(s device.Stream) error { return s.CopyOut(freed, p) })
	r.must(r.dev.HostFree(freed))
	if r.s.Start(stale) == nil {
		t.Error("a graph was started whose host memory is freed")
	}
	r.must(m.Unload())
	if r.s.Start(g) == nil || len(r.s.(*stream).queue) != 0 {
		t.Error("a graph was started whose kernel is unloaded")
	}
	r.must(g.Close())
	if g.Close() == nil || r.s.Start(g) == nil {
		t.Error("a closed graph was started, or closed")
	}
	r.must(r.dev.Close())
	if _, err := r.dev.NewGraph(func(device.Stream) error { return nil }); !errors.Is(err, device.ErrLost) {
		t.Error(err)
	}
}

// TestGraphFails tests that a fault within a graph drops the rest of it and is
// reported once, and that the graph can be started again.
func TestGraphFails(t *testing.T) {
	r := newRig(t)
	add := r.load(program(2, addBody))("k")
	p, at := r.alloc32([]uint32{0, 0}), r.alloc(make([]byte, 16))
	load := r.load(program(1, "ld.param.u64 %d0, [p0];\nld.global.u64 %d1, [%d0];\nld.global.u32 %r1, [%d1];"))("k")
	g := r.graph(func(s device.Stream) error {
		return errors.Join(
			s.Launch(add, one(1), pack(p, uint64(1))), s.Launch(load, one(1), pack(at)), s.Launch(add, one(1), pack(p+4, uint64(1))))
	})
	for i, good := range []bool{true, false, true} {
		to := device.Ptr(16)
		if good {
			to = p
		}
		r.must(r.s.CopyIn(at, pack(to)))
		r.must(r.s.Start(g))
		if err := r.s.Synchronize(); (err == nil) != good || err != nil && !isKind(err, OutOfBounds) {
			t.Errorf("start %d: %v", i, err)
		}
	}
	if got := r.read32(p, 2); got[0] != 3 || got[1] != 2 {
		t.Error(got)
	}
}
