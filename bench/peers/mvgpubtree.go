package peers

import (
	"errors"
	"os"

	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/gpu"
)

const nameMVGpuBTree = "MVGpuBTree"

// peerFolder names the folder of a peer's sources, which are not part of this
// repository.
const peerFolder = "PANDO_MVGPUBTREE"

// WithMVGpuBTree calls body with the peer's subject or, if it cannot run, with
// nil.
func WithMVGpuBTree(s *contest.Session, what string, n int, body func(*contest.Subject) error) error {
	folder := os.Getenv(peerFolder)
	if !s.Wanted(nameMVGpuBTree) {
		return body(nil)
	}
	if folder == "" {
		s.SkipOnce("%s: its sources are not part of this repository; %s=FOLDER says where they are", nameMVGpuBTree, peerFolder)
		return body(nil)
	}
	program, err := gpuPrograms.build(s, nameMVGpuBTree, func(dir string) (string, error) { return gpu.BuildMVGpuBTree(dir, folder) })
	var peer *gpu.Thrust
	if err == nil {
		peer, err = gpu.StartThrust(program, what, n, n, s.Seed, s.WarmUp)
	}
	if err != nil {
		s.Skip("%s, %s at n %s: %v", nameMVGpuBTree, what, contest.SizeText(n), err)
		return body(nil)
	}
	sub := thrustSubject(peer, nameMVGpuBTree, 0)
	sub.Whole = true
	return errors.Join(body(sub), peer.Close())
}
