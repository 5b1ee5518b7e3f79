package peers

import (
	"errors"
	"os/exec"
	"time"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/gpu"
)

// The names of rows of programs that are compiled by nvcc.
const (
	NameThrust       = "thrust::lower_bound"
	NameThrustGather = "thrust::lower_bound and gather"
)

// WithThrust calls body with the peer's subject for n keys or, if it cannot
// run, prints a line with the reason and calls body with nil.
func WithThrust(s *contest.Session, name, mode string, n int, bytes float64, body func(*contest.Subject) error) error {
	return WithThrustOf(s, name, mode, n, s.Queries, bytes, body)
}

// WithThrustOf is WithThrust for a number of queries.
func WithThrustOf(s *contest.Session, name, mode string, n, queries int, bytes float64, body func(*contest.Subject) error) error {
	if !s.Wanted(name) {
		return body(nil)
	}
	path, err := gpuPrograms.build(s, NameThrust, gpu.BuildThrust)
	if errors.Is(err, exec.ErrNotFound) {
		s.Skip("%s: it is compiled here and now, and there is no nvcc on the PATH", name)
		return body(nil)
	}
	var t *gpu.Thrust
	if err == nil {
		t, err = gpu.StartThrust(path, mode, n, queries, s.Seed, s.WarmUp)
	}
	if err != nil {
		s.Skip("%s at n %s: %v", name, contest.SizeText(n), err)
		return body(nil)
	}
	return errors.Join(body(thrustSubject(t, name, bytes)), t.Close())
}

// thrustSubject takes turns with the others although it is a process of its
// own. It checks its results itself: they stay on the GPU.
func thrustSubject(t *gpu.Thrust, name string, bytes float64) *contest.Subject {
	var took time.Duration
	return &contest.Subject{
		System: name, Bytes: bytes, OnGPU: true,
		Do: func(ops int) (err error) {
			took, err = t.Round(ops)
			return err
		},
		Clock: func() time.Duration { return took },
		Check: func(int) error { return nil },
	}
}
