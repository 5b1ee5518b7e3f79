package contest

import (
	"fmt"
	"time"
)

// gpuWarmUp is how long a GPU is kept busy before it is timed: a GPU that was
// idle while answers were checked runs at a fraction of its clock.
const gpuWarmUp = 100 * time.Millisecond

// GPUInfo describes what a GPU experiment ran on.
type GPUInfo struct {
	Name       string `json:"name"`
	Driver     string `json:"driver"`
	Capability int    `json:"compute_capability"` // 90 for 9.0
	Processors int    `json:"multiprocessors"`
	L2         int64  `json:"l2_bytes"`
	Memory     int64  `json:"memory_bytes"`
}

// String describes the GPU in a line.
func (i *GPUInfo) String() string {
	return fmt.Sprintf("%s, %d multiprocessors, %s, compute capability %d.%d, driver %s",
		i.Name, i.Processors, GiB(i.Memory), i.Capability/10, i.Capability%10, i.Driver)
}
