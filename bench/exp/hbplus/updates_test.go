package hbplus

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/rig/rigtest"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/mirror"
)

// ownTrees are the rows of Pando's own trees on the GPU.
var ownTrees = []string{ours.NameGPUTree + ", until it returns", ours.NameGPUTree + ", until in host memory", ours.NameGPUTree + ", DeviceOnly"}

// paperRows are the rows of an experiment's first set with a GPU: those of the
// CPU, of the paper's hybrid, and of Pando's trees.
func paperRows(cpu ...string) []string {
	return slices.Concat(cpu, []string{nameAsynchronous + nameOnGPU, nameSynchronous + nameOnGPU}, ownTrees)
}

var paperUpdates = map[*contest.Experiment][]string{
	updateWays:    paperRows(nameApply, nameAsynchronous, nameSynchronous),
	updateBatches: paperRows(nameApply, nameApply+nameCopyInner, nameAsynchronous+nameCopyInner, nameSynchronous),
	updateMix:     paperRows(nameApply, nameAsynchronous, nameSynchronous),
	rebuildExp:    append([]string{ours.NameSetBatch, "Pando Freeze anew", "Pando Freeze anew" + nameOnGPU}, ownTrees...),
}

// The paper's updates run whole with the interpreter as the GPU: their own
// checks look at every answer.
func TestPaperUpdatesOnTheInterpreter(t *testing.T) {
	for e, want := range paperUpdates {
		s := rigtest.Interpreted(t, e, 1500, 40)
		indextest.Interpreted(t, s.Seed)
		s.Threads, s.Rounds = []int{2}, 1
		rigtest.UseGPU(t, func() (rig.Device, error) { return ptx.New(ptx.Seed(s.Seed), ptx.Memory(256<<20)), nil })
		if err := e.Run(s); err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		if got := rigtest.Names(s.Rows); len(got) < len(want) || !slices.Equal(got[:len(want)], want) || len(s.Skipped) > 0 {
			t.Errorf("%s: rows %q, want %q first; left out: %q", e.Name, got, want, s.Skipped)
		}
		if e == updateWays && !slices.Contains(rigtest.Names(s.Rows), nameCopyGPU) {
			t.Errorf("%s: no row %q", e.Name, nameCopyGPU)
		}
		if s.GPUInfo == nil {
			t.Errorf("%s does not say what GPU it ran on", e.Name)
		}
	}
}

// Without a GPU only its rows are missing, and one line says so.
func TestPaperUpdatesWithoutAGPU(t *testing.T) {
	for e, want := range paperUpdates {
		s := rigtest.Interpreted(t, e, 1000, 40)
		s.Threads, s.Rounds = []int{1}, 1
		rigtest.UseGPU(t, func() (rig.Device, error) { return nil, rig.ErrNoDriver })
		if err := e.Run(s); err != nil || len(s.Skipped) != 1 || !strings.Contains(s.Skipped[0], "on a GPU") {
			t.Errorf("%s: error %v, left out %q", e.Name, err, s.Skipped)
		}
		cpu := slices.DeleteFunc(slices.Clone(want), func(n string) bool { return strings.Contains(n, "GPU") })
		if got := rigtest.Names(s.Rows); len(got) < len(cpu) || !slices.Equal(got[:len(cpu)], cpu) {
			t.Errorf("%s: rows %q, want %q first", e.Name, got, cpu)
		}
	}
}

// A mirror that does not follow is found out.
func TestLazyMirrorsAreFoundOut(t *testing.T) {
	s := rigtest.Interpreted(t, updateWays, 1500, 40)
	d, err := data.NewDataset[uint64](s, 1500)
	if err != nil {
		t.Fatal(err)
	}
	u, err := newUpdated(s, d)
	if err != nil {
		t.Fatal(err)
	}
	defer u.tree.Close()
	u.size(40, 40)
	err = u.withGPU(true, false, func() error {
		u.fresh(0, 50)
		if err := errors.Join(u.hybridBatch(0, 40), u.gpu.mirror.Update(mirror.Synchronous), u.mirrorFollows(), u.check(false, 40)); err != nil {
			return err
		}
		u.hits = 0
		if err := u.hybridBatch(0, 40); err != nil {
			return err
		}
		if err := u.mirrorFollows(); err == nil || !strings.Contains(err.Error(), "the mirror is behind") {
			return fmt.Errorf("a mirror that is behind passes: %w", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A GPU that copies nothing is found out.
func TestLazyCopiesOfInnerLevelsAreFoundOut(t *testing.T) {
	s := rigtest.Interpreted(t, rebuildExp, 1500, 40)
	indextest.UseGPU(t, func(int) (rig.Device, error) { return nil, rig.ErrNoDriver }) // none of Pando's own trees
	s.Threads, s.Rounds = []int{2}, 1
	rigtest.UseGPU(t, func() (rig.Device, error) { return &rigtest.LazyGPU{Device: ptx.New(), NoCopies: true}, nil })
	if err := rebuildExp.Run(s); err == nil || !strings.Contains(err.Error(), "differs") {
		t.Errorf("copies that are not made: error %v", err)
	}
}
