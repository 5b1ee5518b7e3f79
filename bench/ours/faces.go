package ours

import (
	"errors"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
)

// FaceWay is a tree of Pando's face in one place. Another way to be on the GPU
// is one more of them.
type FaceWay struct {
	Name string
	opts []pando.Option
	GPU  bool
	Twin bool // there is a tree in host memory, too, that follows
}

// FaceWays returns the trees on the GPU, and that of the CPU.
func FaceWays(s *contest.Session) []FaceWay {
	return []FaceWay{
		{NameGPUTree, []pando.Option{pando.On(pando.GPU(s.GPU))}, true, true},
		{NameGPUTree + ", DeviceOnly", []pando.Option{pando.On(pando.GPU(s.GPU)), pando.DeviceOnly()}, true, false},
		{NameTree + ", CPU", []pando.Option{pando.On(pando.CPU)}, false, false},
	}
}

// FaceTree is a tree of Pando's face with the entries of a dataset.
type FaceTree[K pando.Key] struct {
	FaceWay
	Tree *pando.Tree[K, uint64]
}

// OpenFace returns nil, and prints a line with the reason, if the tree is not
// where it should be.
func OpenFace[K pando.Key](s *contest.Session, keys []K, vals []uint64, w FaceWay, threads int) (*FaceTree[K], error) {
	s.Say("filling %s, %s ...", w.Name, contest.SizeText(len(keys)))
	tree, err := pando.TreeOf(keys, vals, append(w.opts[:len(w.opts):len(w.opts)], pando.Workers(threads))...)
	if err != nil {
		return nil, err
	}
	if st := tree.Stats(); w.GPU && st.Device != pando.GPU(s.GPU) {
		tree.Close()
		s.SkipOnce("%s: the tree is on %v: %s", w.Name, st.Device, st.Reason)
		return nil, nil
	}
	return &FaceTree[K]{w, tree}, nil
}

// Wait waits until everything is in host memory, as every read in order does.
func (t *FaceTree[K]) Wait() { t.Tree.Min() }

// Strayed returns an error if the GPU has been given up.
func (t *FaceTree[K]) Strayed() error {
	if st := t.Tree.Stats(); t.GPU && st.Device.String() == pando.CPU.String() {
		return errors.New(st.Reason)
	}
	return nil
}

// Batches does operations in batches, one after the other, and returns what they
// took. apart says that each begins when the one before is in host memory, and
// that this is not timed.
func (t *FaceTree[K]) Batches(ops, batch int, apart bool, work func(lo, hi int) error) (took time.Duration, err error) {
	for lo := 0; lo < ops; lo += batch {
		start := time.Now()
		if err := work(lo, min(lo+batch, ops)); err != nil {
			return 0, err
		}
		took += time.Since(start)
		if apart {
			t.Wait()
		}
	}
	start := time.Now()
	t.Wait()
	if !apart {
		took += time.Since(start)
	}
	return took, t.Strayed()
}

// FaceRow is a row of a tree where it is changed; for Apart see Batches.
type FaceRow struct {
	Name  string
	Apart bool
}

// Rows returns the rows of a tree that is changed.
func (t *FaceTree[K]) Rows() []FaceRow {
	if !t.Twin {
		return []FaceRow{{t.Name, false}}
	}
	return []FaceRow{{t.Name + ", until it returns", true}, {t.Name + ", until in host memory", false}}
}
