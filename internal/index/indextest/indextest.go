// Package indextest puts the interpreter, and devices that fail, in the place
// of a GPU. Only tests import it.
package indextest

import (
	"io"
	"log/slog"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
)

// UseGPU makes open stand for every GPU until the test ends.
func UseGPU(t testing.TB, open func(ordinal int) (device.Device, error)) {
	t.Helper()
	t.Cleanup(live.LinkGPUs(open))
}

// PreferCPU sets whether batches that the CPU answers faster are its own, until
// the test ends.
func PreferCPU(t testing.TB, prefer bool) {
	t.Helper()
	old := index.PreferCPU
	index.PreferCPU = prefer
	t.Cleanup(func() { index.PreferCPU = old })
}

// Interpreted runs a test with the interpreter in the place of GPU 0. It is
// not asked whether it is faster.
func Interpreted(t testing.TB, seed uint64) {
	t.Helper()
	PreferCPU(t, false)
	UseGPU(t, func(i int) (device.Device, error) {
		if i != 0 {
			return nil, device.ErrNoDevice
		}
		return ptx.New(ptx.Seed(seed)), nil
	})
}

// Hasty lets the planner measure with a few keys, and not leave out a GPU that
// is slow.
func Hasty(t testing.TB, keys int) {
	t.Helper()
	PreferCPU(t, false)
	old := index.SampleKeys
	index.SampleKeys = keys
	t.Cleanup(func() { index.SampleKeys = old })
}

// Quiet drops what is logged until the test ends.
func Quiet(t testing.TB) {
	t.Helper()
	log := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	t.Cleanup(func() { slog.SetDefault(log) })
}
