// Package cuda links the driver of NVIDIA GPUs into a program:
//
//	import _ "github.com/pando-index/pando/cuda"
//
// With it, pando.On(pando.GPU(0)) and the like put indexes on a GPU, and indexes of a
// million entries and more try one by themselves. Without it, the CPU answers, and Stats
// says so; the program is smaller by the code for GPUs, and needs no C library: it is
// linked statically where CGO_ENABLED is 0, or where nothing else in it needs cgo.
//
// The driver itself, libcuda.so.1, is looked for as the first GPU is asked for. A program
// with this import also runs on machines that have none. It is for Linux on amd64 and
// arm64; elsewhere, and with the build tag nogpu, the import changes nothing but what
// Stats says.
package cuda

import (
	"log/slog"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/cuda"
	"github.com/pando-index/pando/internal/live"
)

func init() {
	device.Warn = slog.Warn
	live.LinkGPUs(cuda.Open)
}
