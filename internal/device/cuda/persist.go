//go:build !nogpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/pando-index/pando/internal/device"
)

// accessWindow is the driver's CUaccessPolicyWindow, padded to the 64 bytes of
// a CUstreamAttrValue.
type accessWindow struct {
	base      uintptr
	bytes     uintptr
	hitRatio  float32 // fraction of the window's lines that get hit; the rest get miss
	hit, miss int32
	_         [36]byte
}

// Persist asks that lines of this range that kernels of the stream read stay in
// the second-level cache. The range is cut to the length that the GPU can
// track; if it is larger than the cache can keep, the GPU keeps a fraction of
// its lines. A range of 0 bytes ends this, for the whole device. A GPU that
// cannot do it (below compute capability 8.0) returns an error, and nothing
// changes.
func (s *stream) Persist(base device.Ptr, bytes int) error {
	if bytes < 0 {
		return fmt.Errorf("cuda: cannot persist %d bytes", bytes)
	}
	h, err := s.hold()
	if err != nil {
		return err
	}
	defer s.release()
	c := s.gpu.context
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

// Persistable returns the number of bytes that Persist can keep at most.
func (s *stream) Persistable() int {
	if _, err := s.hold(); err != nil {
		return 0
	}
	defer s.release()
	most, err := s.gpu.context.attribute(attrPersistingL2Bytes)
	if err != nil {
		return 0
	}
	return most
}

// persisting returns how many bytes of a range the cache can keep, and how
// many the GPU can track.
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
