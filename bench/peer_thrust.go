package main

import (
	"errors"
	"os/exec"
	"time"

	"github.com/pando-index/pando/bench/gpu"
)

const (
	nameThrust       = "thrust::lower_bound"
	nameThrustGather = "thrust::lower_bound and gather"
)

// withThrust calls body with the peer's subject for n keys or, if it cannot
// run, prints a line with the reason and calls body with nil.
func withThrust(s *session, name, mode string, n int, bytes float64, body func(*subject) error) error {
	return withThrustOf(s, name, mode, n, s.queries, bytes, body)
}

// withThrustOf is withThrust for a number of queries.
func withThrustOf(s *session, name, mode string, n, queries int, bytes float64, body func(*subject) error) error {
	if !s.wanted(name) {
		return body(nil)
	}
	path, err := gpuPrograms.build(s, nameThrust, gpu.BuildThrust)
	if errors.Is(err, exec.ErrNotFound) {
		s.skip("%s: it is compiled here and now, and there is no nvcc on the PATH", name)
		return body(nil)
	}
	var t *gpu.Thrust
	if err == nil {
		t, err = gpu.StartThrust(path, mode, n, queries, s.seed, s.warmUp)
	}
	if err != nil {
		s.skip("%s at n %s: %v", name, sizeText(n), err)
		return body(nil)
	}
	return errors.Join(body(thrustSubject(t, name, bytes)), t.Close())
}

// thrustSubject takes turns with the others although it is a process of its
// own. It checks its results itself: they stay on the GPU.
func thrustSubject(t *gpu.Thrust, name string, bytes float64) *subject {
	var took time.Duration
	return &subject{
		system: name, bytes: bytes, onGPU: true,
		do: func(ops int) (err error) {
			took, err = t.Round(ops)
			return err
		},
		clock: func() time.Duration { return took },
		check: func(int) error { return nil },
	}
}
