package live_test

import (
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/index/indextest"
	"github.com/pando-index/pando/internal/op"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/par"
)

// idle is a device that does nothing, at once: what is left is the host's part.
type idle struct{ device.Device }

type (
	idleStream struct{ device.Stream }
	idleEvent  struct{ device.Event }
	idleModule struct{ device.Module }
	idleKernel struct{ device.Kernel }
)

func (idle) Info() device.Info                   { return device.Info{Name: "idle", Capability: 90, Processors: 1} }
func (idle) FreeBytes() (int64, error)           { return 1 << 30, nil }
func (idle) Alloc(int) (device.Ptr, error)       { return 256, nil }
func (idle) Free(device.Ptr) error               { return nil }
func (idle) HostAlloc(n int) ([]byte, error)     { return make([]byte, n), nil }
func (idle) HostFree([]byte) error               { return nil }
func (idle) Load(string) (device.Module, error)  { return idleModule{}, nil }
func (idle) NewStream() (device.Stream, error)   { return idleStream{}, nil }
func (idle) NewEvent() (device.Event, error)     { return idleEvent{}, nil }
func (idle) Reserve(int64) (device.Range, error) { return nil, device.ErrUnsupported }
func (idle) Close() error                        { return nil }

func (idleModule) Kernel(string) (device.Kernel, error) { return idleKernel{}, nil }
func (idleModule) Unload() error                        { return nil }

func (idleStream) CopyIn(device.Ptr, []byte) error                 { return nil }
func (idleStream) CopyOut([]byte, device.Ptr) error                { return nil }
func (idleStream) CopyDevice(device.Ptr, device.Ptr, int) error    { return nil }
func (idleStream) Fill(device.Ptr, uint32, int) error              { return nil }
func (idleStream) Launch(device.Kernel, device.Grid, []byte) error { return nil }
func (idleStream) Record(device.Event) error                       { return nil }
func (idleStream) Wait(device.Event) error                         { return nil }
func (idleStream) Synchronize() error                              { return nil }
func (idleStream) Close() error                                    { return nil }
func (idleEvent) Synchronize() error                               { return nil }
func (idleEvent) Close() error                                     { return nil }

// BenchmarkHostPart times what the host does of a batch on a GPU alone: it copies
// operations to page-locked memory, and answers from there.
func BenchmarkHostPart(b *testing.B) {
	const n = 4 << 20
	keys, vals, found, kinds := make([]uint64, n), make([]uint64, n), make([]bool, n), make([]op.Kind, n)
	for i := range keys {
		keys[i], vals[i], kinds[i] = uint64(i)*7, uint64(i), op.Kind(i%3)
	}
	indextest.UseGPU(b, func(int) (device.Device, error) { return idle{}, nil })
	for _, workers := range []int{1, par.Workers(0)} {
		m, err := newMap[uint64](index.KeyTypeOf[uint64](), index.Config{Device: index.Device{Kind: index.GPU}, DeviceOnly: true, Workers: workers})
		if err != nil {
			b.Fatal(err)
		}
		run := func(name string, f func() error) {
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					if err := f(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e9, "Gops/s")
			})
		}
		raw := order.KeysOf(keys)
		run("get", func() error {
			m.GetBatch(raw, index.ColumnOf(vals), found)
			return nil
		})
		run("set", func() error { return m.SetBatch(raw, vals) })
		run("apply", func() error {
			return m.Apply(raw, kinds, 0, index.ColumnOf(vals), found, true)
		})
		m.Close()
	}
}
