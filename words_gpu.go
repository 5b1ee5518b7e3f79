package pando

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/pando-index/pando/internal/blocked"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/exec"
)

// attach puts a copy of the strings on a GPU if that is asked for, or if it is
// left open and pays. It gives where batches run, and why.
func (e *words[K, V]) attach(c config) (Device, string, error) {
	asked := c.device
	text, can := e.list.(*blocked.Text)
	switch {
	case asked.kind == cpu:
		return CPU, "asked for", nil
	case !can:
		return CPU, "strings that are not compressed are searched on the CPU", nil
	case asked.kind == auto && e.n < autoEntries:
		return CPU, "small enough for the CPU's caches", nil
	}
	dev, err := openGPU(asked.ordinal)
	if err == nil {
		err = e.copyTo(dev, text, c.room)
	}
	if err != nil {
		return withoutGPU(asked, err)
	}
	return e.settle(asked)
}

// copyTo copies the list to a GPU.
func (e *words[K, V]) copyTo(dev device.Device, text *blocked.Text, room int64) error {
	free, err := dev.FreeBytes()
	if err != nil {
		return errors.Join(err, dev.Close())
	}
	if room > 0 {
		free = min(free, room)
	}
	e.gpu, err = exec.NewText(text, e.workers, dev, free)
	return err
}

// settle measures from which batch size on the GPU pays, where Auto has to
// choose.
func (e *words[K, V]) settle(asked Device) (Device, string, error) {
	if asked.kind != auto || !preferCPU {
		return asked, "", nil // Report says how
	}
	sample := make([]string, min(sampleKeys, 4*uint64(e.n)))
	x := uint64(1)
	for i := range sample {
		x = x*6364136223846793005 + 1442695040888963407
		sample[i] = e.list.Key(int(x >> 16 % uint64(e.n)))
	}
	e.least = e.gpu.Crossover(sample, func(keys []string, ranks []int) {
		e.pieces(len(keys), func(lo, hi int) { e.list.Find(keys[lo:hi], ranks[lo:hi]) })
	})
	if e.least == 0 {
		why := "measured: the CPU alone is faster for batches of any size"
		if down := e.gpu.Down(); down != nil {
			why = "GPU failed: " + down.Error()
		}
		err := e.gpu.Close()
		e.gpu = nil
		if err != nil {
			slog.Warn("pando: the GPU could not be given back", "error", err)
		}
		return CPU, why, nil
	}
	return GPU(asked.ordinal), "", nil
}

// onGPU says whether a batch of n keys goes to the GPU.
func (e *words[K, V]) onGPU(n int) bool { return e.gpu != nil && n >= e.least }

// rankAll counts the strings below others, wherever that is done for as many.
func (e *words[K, V]) rankAll(names []string, ranks []int) {
	if e.onGPU(len(names)) {
		e.gpu.Rank(names, ranks)
		return
	}
	e.pieces(len(names), func(lo, hi int) { e.list.Rank(names[lo:hi], ranks[lo:hi]) })
}

// Report adds to Stats what changes while an index is in use.
func (e *words[K, V]) Report(s *Stats) {
	if e.gpu == nil {
		return
	}
	if err := e.gpu.Down(); err != nil {
		s.Device, s.Reason, s.DeviceBytes = CPU, "GPU failed: "+err.Error(), 0
		return
	}
	held, all := e.gpu.Held()
	s.DeviceBytes = held
	if s.Reason == "" {
		s.Reason = "partial keys and strings are in the GPU's memory"
		if !all {
			s.Reason = "the GPU searches by partial keys, the CPU compares the strings, for which the GPU has no room"
		}
		if e.least > 0 {
			s.Reason += fmt.Sprintf("; measured: faster than the CPU alone for batches of %d keys and more", e.least)
		}
	}
}
