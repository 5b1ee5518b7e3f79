//go:build nogpu || !linux || !(amd64 || arm64)

package cuda

import (
	"errors"
	"testing"

	"github.com/pando-index/pando/internal/device"
)

func TestLeftOut(t *testing.T) {
	_, devices := Devices()
	_, open := Open(0)
	_, occupancy := Occupancy(nil, 32, 0)
	for _, err := range []error{devices, open, occupancy} {
		if !errors.Is(err, device.ErrNoDriver) {
			t.Error(err)
		}
	}
}
