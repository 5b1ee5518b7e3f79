//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/seed"
)

// arena returns memory that is not managed by Go.
func arena(t testing.TB, n int) []byte {
	b, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	check(t, err)
	t.Cleanup(func() { check(t, syscall.Munmap(b)) })
	return b
}

// testCopies does random copies and fills in a block of device memory and the
// same in a slice, with host memory of each kind, and compares often.
func testCopies(t *testing.T, d device.Device, n int) {
	rng := seed.Rand(t)
	p := must[device.Ptr](t)(d.Alloc(n))
	s := must[device.Stream](t)(d.NewStream())
	model := make([]byte, n)
	hosts := [][]byte{make([]byte, n), must[[]byte](t)(d.HostAlloc(n)), arena(t, n)}
	check(t, d.Register(hosts[2]))
	check(t, s.Fill(p, 0, n))
	for i := range 300 {
		step(t, rng, s, p, model, hosts[rng.IntN(len(hosts))])
		if i%10 == 0 {
			compare(t, s, p, model, hosts[rng.IntN(len(hosts))])
		}
	}
	check(t, d.Unregister(hosts[2]))
	check(t, d.HostFree(hosts[1]))
	check(t, d.Free(p))
	check(t, s.Close())
}

// step does one random operation on the device and on the model.
func step(t *testing.T, rng *rand.Rand, s device.Stream, p device.Ptr, model, host []byte) {
	n := len(model)
	from := rng.IntN(n)
	size := rng.IntN(n - from + 1)
	switch rng.IntN(3) {
	case 0:
		part := host[from : from+size]
		for i := range part {
			part[i] = byte(rng.Uint32())
		}
		check(t, s.CopyIn(p+device.Ptr(from), part))
		check(t, s.Synchronize())
		copy(model[from:], part)
	case 1:
		size = min(size, n/2) // the halves must not overlap
		a, b := rng.IntN(n/2-size+1), n/2+rng.IntN(n/2-size+1)
		check(t, s.CopyDevice(p+device.Ptr(b), p+device.Ptr(a), size))
		copy(model[b:], model[a:a+size])
	case 2:
		from, size = from&^3, size&^3
		v := rng.Uint32()
		check(t, s.Fill(p+device.Ptr(from), v, size))
		copy(model[from:from+size], bytes.Repeat([]byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)}, size/4))
	}
}

func compare(t *testing.T, s device.Stream, p device.Ptr, model, host []byte) {
	t.Helper()
	clear(host)
	check(t, s.CopyOut(host, p))
	check(t, s.Synchronize())
	if !bytes.Equal(host, model) {
		t.Fatal("device memory is not what was written to it")
	}
}
