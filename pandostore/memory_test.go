package pandostore

import (
	"errors"
	"maps"
	"sync"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/faulty"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/pandostore/internal/disk/crash"
)

// refuseDeletions has a tree find no memory for deletions.
func refuseDeletions(h *live.Handle) {
	live.PutBetween(h.Open(), live.Between{Delete: func() error { return op.ErrLimit }})
}

// A deletion that finds no memory is an error of its caller's, and of nobody else: the entry stays, also
// when the store is opened again, and other changes go on.
func TestDeletesWithoutMemory(t *testing.T) {
	fs := crash.New()
	s := must[int, int](t, fs, small)
	want := map[int]int{}
	for i := range 100 {
		try(t, s.Set(i, i))
		want[i] = i
	}
	refuseDeletions(s.c.tree.h)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				var err error
				switch k := g*10 + i%10; g {
				case 0, 1, 2:
					_, _, err = s.Delete(k)
				case 3:
					_, err = s.DeleteBatch([]int{k, k + 1}, nil)
				case 4:
					_, err = s.DeleteRange(k, k+3)
				case 5:
					_, _, _, err = s.PopMin()
				case 6:
					err = s.Update(k, func(int, bool) (int, bool) { return 0, false })
				default:
					if err := s.Set(1000+i, i); err != nil {
						t.Error(err)
					}
					continue
				}
				if !errors.Is(err, pando.ErrMemoryLimit) {
					t.Errorf("goroutine %d: %v", g, err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 20 {
		want[1000+i] = i
	}
	try(t, s.c.refuses())
	same(t, fs.Clone(), want) // as after a kill
	try(t, s.Close())
	same(t, fs, want)
}

// same compares what a folder has with what it is to have.
func same(t *testing.T, fs *crash.Folder, want map[int]int) {
	t.Helper()
	s := must[int, int](t, fs, small)
	defer s.Close()
	if got := maps.Collect(s.All()); !maps.Equal(got, want) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
}

// Open returns an error where there is no memory for a deletion in the log.
func TestOpenWithoutMemory(t *testing.T) {
	for what, remove := range map[string]func(s *Store[int, int]) error{
		"one":   func(s *Store[int, int]) error { _, _, err := s.Delete(1); return err },
		"batch": func(s *Store[int, int]) error { _, err := s.DeleteBatch(make([]int, 2*alone), nil); return err },
		"range": func(s *Store[int, int]) error { _, err := s.DeleteRange(0, 5); return err },
	} {
		t.Run(what, func(t *testing.T) {
			fs := crash.New()
			s := must[int, int](t, fs)
			try(t, s.Set(1, 1), remove(s), s.Close())
			cfg, err := configure(nil)
			try(t, err)
			var c core
			var tree *pando.Tree[int, int]
			err = c.open(fs, cfg, func(name, note string) (target, error) {
				var err error
				if tree, err = loadTree[int, int](fs, name, cfg.options(note)); err != nil {
					return target{}, err
				}
				x := targetOf(tree)
				refuseDeletions(x.h)
				return x, nil
			})
			if !errors.Is(err, pando.ErrMemoryLimit) {
				t.Error(err)
			}
			tree.Close()
			want := map[int]int{}
			if what == "batch" {
				want[1] = 1
			}
			same(t, fs, want)
		})
	}
}

// Where the GPU that alone holds the tree is lost, whoever asks for a change gets an error, also if its
// group is another's to lead, and the store takes no changes any more. Open finds all that was
// acknowledged.
func TestLostGPU(t *testing.T) {
	indextest.Quiet(t)
	indextest.PreferCPU(t, false)
	first := seed.Of(t)
	for what, change := range map[string]func(s *Store[int, int]) error{
		"Update": func(s *Store[int, int]) error {
			return s.Update(1, func(old int, _ bool) (int, bool) { return old, true })
		},
		"PopMin":     func(s *Store[int, int]) error { _, _, _, err := s.PopMin(); return err },
		"Set":        func(s *Store[int, int]) error { return s.Set(2, 2) },
		"Delete":     func(s *Store[int, int]) error { _, _, err := s.Delete(2); return err },
		"Checkpoint": func(s *Store[int, int]) error { return s.Checkpoint() },
	} {
		t.Run(what, func(t *testing.T) {
			dev := faulty.New(ptx.New(ptx.Seed(first)), faulty.Plan{})
			indextest.UseGPU(t, func(int) (device.Device, error) { return dev, nil })
			fs := crash.New()
			s := must[int, int](t, fs, small, Tree(pando.On(pando.GPU(0)), pando.DeviceOnly()))
			try(t, s.Set(1, 1))
			dev.Lose()
			var err error
			within(t, what, func() { err = change(s) })
			if !errors.Is(err, pando.ErrDeviceLost) {
				t.Error(err)
			}
			within(t, "Close", func() { s.Close() })
			back := must[int, int](t, fs, small)
			defer back.Close()
			if v, ok := back.Get(1); !ok || v != 1 {
				t.Errorf("key 1 has %d, %t", v, ok)
			}
		})
	}
}
