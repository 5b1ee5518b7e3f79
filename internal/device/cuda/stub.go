//go:build nogpu || !linux || !(amd64 || arm64)

package cuda

import (
	"fmt"

	"github.com/pando-index/pando/internal/device"
)

var errLeftOut = fmt.Errorf("%w: this binary was built without CUDA", device.ErrNoDriver)

// Devices returns an error that wraps device.ErrNoDriver in this build.
func Devices() ([]device.Info, error) { return nil, errLeftOut }

// Open returns an error that wraps device.ErrNoDriver in this build.
func Open(int) (device.Device, error) { return nil, errLeftOut }

// Occupancy returns an error that wraps device.ErrNoDriver in this build.
func Occupancy(device.Kernel, int, int) (int, error) { return 0, errLeftOut }
