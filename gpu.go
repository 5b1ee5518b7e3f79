package pando

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/exec"
)

// openGPU opens a GPU; tests put the interpreter in its place.
var openGPU = cuda.Open

// autoEntries is the size from which on Auto looks for a GPU: below, an index
// is in the CPU's caches, and opening a GPU takes longer than building it.
const autoEntries = 1 << 20

// sampleKeys is the number of keys with which Auto compares CPU and GPU.
const sampleKeys = 256 << 10

// attach puts a copy of the index on a GPU if that is asked for, or if it is
// left open and pays. It gives where batches run, and why.
func (e *fixed[K, C, V]) attach(asked Device) (Device, string, error) {
	switch {
	case asked.kind == cpu:
		return CPU, "asked for", nil
	case asked.kind == auto && e.tree.Len < autoEntries:
		return CPU, "small enough for the CPU's caches", nil
	}
	err := e.copyTo(asked.ordinal)
	switch {
	case errors.Is(err, device.ErrNoDevice) && asked.kind == gpu:
		return asked, "", fmt.Errorf("%w: On(%v): %w; `pando devices` lists what there is", ErrNoDevice, asked, err)
	case errors.Is(err, device.ErrNoDriver):
		return CPU, "no GPU driver on this machine", nil
	case err != nil:
		slog.Warn("pando: the index is not on the GPU, the CPU answers", "error", err)
		return CPU, "GPU not used: " + err.Error(), nil
	case asked.kind == gpu:
		return asked, "asked for", nil
	}
	return e.compare()
}

// copyTo opens a GPU and copies the tree there.
func (e *fixed[K, C, V]) copyTo(ordinal int) error {
	dev, err := openGPU(ordinal)
	if err != nil {
		return err
	}
	image := exec.Image{Tree: &e.tree.Tree, Bytes: inlineSize[V]()}
	image.Memory, image.Vals = e.tree.Memory()
	e.gpu, err = exec.NewGPU(e.cpu, dev, image)
	return err
}

// compare measures from which batch size on the GPU pays.
func (e *fixed[K, C, V]) compare() (Device, string, error) {
	sample := make([]K, sampleKeys)
	x := uint64(1)
	for i := range sample {
		x = x*6364136223846793005 + 1442695040888963407
		sample[i] = e.Key(int(x >> 16 % e.tree.Len))
	}
	e.least = e.gpu.Crossover(sample)
	if e.least == 0 {
		err := e.gpu.Close()
		e.gpu = nil
		return CPU, "measured: the CPU is faster for batches of any size", err
	}
	return GPU(0), fmt.Sprintf("measured: the GPU is faster for batches of %d keys and more", e.least), nil
}

// onGPU says whether a batch of n keys goes to the GPU.
func (e *fixed[K, C, V]) onGPU(n int) bool { return e.gpu != nil && n >= e.least }

// Report adds to Stats what changes while an index is in use.
func (e *fixed[K, C, V]) Report(s *Stats) {
	if e.gpu == nil {
		return
	}
	if err := e.gpu.Down(); err != nil {
		s.Device, s.Reason = CPU, "GPU failed: "+err.Error()
	}
}
