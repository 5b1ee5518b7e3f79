//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
)

// accessWindow is the driver's CUaccessPolicyWindow, filled up to the 64 bytes
// of a CUstreamAttrValue.
type accessWindow struct {
	base      uintptr
	bytes     uintptr
	hitRatio  float32 // share of the window's lines that get hit, the rest get miss
	hit, miss int32
	_         [36]byte
}

// Persist asks that what kernels of the stream read in this range stays in the
// second-level cache. The range is cut to what the GPU can watch; of a range
// larger than the cache can keep, a share of the lines is chosen by the GPU.
// No bytes end it, for the whole device. A GPU that cannot do it (before
// compute capability 8.0) gives an error, and nothing changes.
func Persist(s device.Stream, base device.Ptr, bytes int) error {
	own, ok := s.(*stream)
	if !ok {
		return fmt.Errorf("cuda: not a stream of this package: %T", s)
	}
	if bytes < 0 {
		return fmt.Errorf("cuda: cannot persist %d bytes", bytes)
	}
	h, err := own.hold()
	if err != nil {
		return err
	}
	defer own.release()
	c := own.gpu.context
	if bytes == 0 {
		return errors.Join(c.setWindow(h, &accessWindow{}), c.call(cuCtxResetPersistingL2Cache))
	}
	keep, window, err := c.persisting(bytes)
	if err != nil {
		return err
	}
	const persisting, streaming, setAside = 2, 1, 6
	if err := c.call(cuCtxSetLimit, setAside, uintptr(keep)); err != nil {
		return err
	}
	return c.setWindow(h, &accessWindow{
		base: uintptr(base), bytes: uintptr(window),
		hitRatio: float32(keep) / float32(window), hit: persisting, miss: streaming,
	})
}

// persisting gives how much of a range the cache can keep, and how much of it
// the GPU can watch.
func (c *context) persisting(bytes int) (keep, window int, err error) {
	most, err := c.attribute(attrPersistingL2Bytes)
	if err != nil {
		return 0, 0, err
	}
	widest, err := c.attribute(attrAccessWindowBytes)
	if err != nil {
		return 0, 0, err
	}
	if most == 0 || widest == 0 {
		return 0, 0, errors.New("cuda: this GPU cannot keep data in its cache")
	}
	window = min(bytes, widest)
	return min(window, most), window, nil
}

func (c *context) attribute(attribute uintptr) (int, error) {
	var v int32
	err := c.call(cuDeviceGetAttribute, uintptr(unsafe.Pointer(&v)), attribute, uintptr(c.gpu))
	return int(v), err
}

func (c *context) setWindow(stream uintptr, w *accessWindow) error {
	const accessPolicyWindow = 1
	return c.call(cuStreamSetAttribute, stream, accessPolicyWindow, uintptr(unsafe.Pointer(w)))
}
