package hbplus

import (
	"errors"
	"slices"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/exec"
	"github.com/pando-index/pando/internal/implicit"
	"github.com/pando-index/pando/internal/layout"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
)

// spy is a device that notes the most blocks of a launch.
type spy struct {
	device.Device
	keeps bool // its streams are device.Persisters
	most  int
	kept  int
}

type spyStream struct {
	device.Stream
	of *spy
}

type keepingStream struct{ spyStream }

func (d *spy) NewStream() (device.Stream, error) {
	s, err := d.Device.NewStream()
	if d.keeps {
		return keepingStream{spyStream{s, d}}, err
	}
	return spyStream{s, d}, err
}

func (s spyStream) Launch(k device.Kernel, g device.Grid, params []byte) error {
	s.of.most = max(s.of.most, g.Blocks)
	return s.Stream.Launch(k, g, params)
}

func (s keepingStream) Persistable() int { return 1 << 20 }

func (s keepingStream) Persist(_ device.Ptr, bytes int) error {
	s.of.kept = bytes
	return nil
}

// Answers are the same whatever the limit, and no launch has more blocks.
func TestThrottledAnswers(t *testing.T) {
	rng := seed.Rand(t)
	keys := make([]uint32, 2000)
	for i := range keys {
		keys[i] = rng.Uint32()
	}
	slices.Sort(keys)
	tree, err := implicit.Build(layout.Source[uint32]{Len: len(keys), Codes: keys}, implicit.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Release()
	below := &spy{Device: ptx.New()}
	dev, image := Throttle(below), tree.Image()
	cpu := exec.NewCPU(tree, len(keys), 2)
	gpu, err := exec.NewGPU(cpu, dev, image, exec.Whole(&image))
	if err != nil {
		t.Fatal(err)
	}
	defer gpu.Close()
	asked := make([]uint32, 1500)
	for i := range asked {
		asked[i] = rng.Uint32()
	}
	got, want := make([]int, len(asked)), make([]int, len(asked))
	tree.Rank(asked, want)
	for _, limit := range []int{0, 1, 3, 0} {
		dev.Limit(limit)
		below.most = 0
		clear(got)
		gpu.Rank(order.KeysOf(asked), got)
		if !slices.Equal(got, want) || gpu.Down() != nil {
			t.Errorf("at most %d blocks: other ranks, %v", limit, gpu.Down())
		}
		if below.most == 0 || limit > 0 && below.most != limit || limit == 0 && below.most <= 3 {
			t.Errorf("at most %d blocks: there were %d", limit, below.most)
		}
	}
}

func (d *spy) NewGraph(chain func(device.Stream) error) (device.Graph, error) {
	return d.Device.NewGraph(func(s device.Stream) error { return chain(spyStream{s, d}) })
}

// The launches of a graph keep to the limit, too.
func TestThrottledGraphs(t *testing.T) {
	const nothing = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing()\n{\nret;\n}\n"
	below := &spy{Device: ptx.New()}
	dev := Throttle(below)
	m, err := dev.Load(nothing)
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel("nothing")
	if err != nil {
		t.Fatal(err)
	}
	dev.Limit(3)
	g, err := dev.NewGraph(func(s device.Stream) error {
		return s.Launch(k, device.Grid{Blocks: 10, Threads: 32}, nil)
	})
	if err != nil || below.most != 3 {
		t.Fatalf("%d blocks, %v", below.most, err)
	}
	s, err := dev.NewStream()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Start(g), s.Synchronize(), g.Close(), dev.Close()); err != nil {
		t.Error(err)
	}
}

// A stream can be told what to keep in the cache if the device's own can.
func TestThrottledStreamsPersist(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		below := &spy{Device: ptx.New(), keeps: keeps}
		dev := Throttle(below)
		s, err := dev.NewStream()
		if err != nil {
			t.Fatal(err)
		}
		p, ok := s.(device.Persister)
		if ok != keeps {
			t.Errorf("a Persister: %v, want %v", ok, keeps)
		}
		if ok && (p.Persistable() != 1<<20 || p.Persist(8, 64) != nil || below.kept != 64) {
			t.Errorf("%d bytes can be kept, %d are", p.Persistable(), below.kept)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}
