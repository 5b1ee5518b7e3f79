package gpu

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/bench/contest"
	"github.com/pando-index/pando/bench/data"
	"github.com/pando-index/pando/bench/ours"
	"github.com/pando-index/pando/bench/peers"
	"github.com/pando-index/pando/bench/rig"
	"github.com/pando-index/pando/bench/work"
	"github.com/pando-index/pando/internal/index"
)

var gpuStrings = &contest.Experiment{
	Name:     "gpu-strings",
	About:    "a batch of Get, strings to uint64, random hits, as Go strings and as bytes and offsets, on all cores and through the GPU",
	Per:      "one key looked up, copies to the GPU and back included",
	CaseName: "keys",
	Sizes:    []int{16 * contest.Mega},
	Queries:  8 * contest.Mega,
	Run:      runGPUStrings,
}

func runGPUStrings(s *contest.Session) error {
	if there, err := rig.HasGPU(s); !there {
		return err
	}
	for _, n := range s.Sizes {
		for _, kind := range data.TextKinds[:2] {
			debug.FreeOSMemory() // frees the memory of the previous ones
			if !s.Room(kind.Label, n, 5*(kind.Bytes+data.StringHeader+data.TextValue), "use a smaller --n") {
				continue
			}
			if err := gpuStringContest(s, data.NewTexts(s, kind, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

func gpuStringContest(s *contest.Session, t *data.Texts) error {
	var systems []*ours.FrozenText
	defer func() { peers.CloseAll(systems) }()
	add := func(name string, opts ...pando.Option) error {
		f, err := ours.FreezeTexts(t, name, contest.AllCores(), opts...)
		if err == nil {
			systems = append(systems, f)
		}
		return err
	}
	if err := add(ours.NameCPU); err != nil {
		return err
	}
	if err := add(ours.NameGPU, pando.On(pando.GPU(s.GPU))); err != nil {
		return err
	}
	// Asked through the face, a hybrid that is slower than the CPU would leave
	// the GPU out: here it is to be measured.
	defer func(prefer bool) { index.PreferCPU = prefer }(index.PreferCPU)
	index.PreferCPU = false
	if err := add(ours.NameGPU+", strings on the host", pando.On(pando.Hybrid(s.GPU))); err != nil {
		return err
	}
	l := work.NewTextLookups(s, t)
	c := &contest.Contest{N: len(t.Keys), Threads: contest.AllCores(), Label: t.Label, Ops: s.Queries,
		Fresh: func(round int) { l.Draw(s.Seed, round) }}
	for i, sys := range systems {
		sub := l.Subject(sys)
		sub.Reference = i == 0
		c.Subjects = append(c.Subjects, sub)
	}
	return withPackedTexts(s, l, func(forms []*packedTexts) error {
		for _, p := range forms {
			for _, sys := range systems[:2] { // all on the CPU, all on the GPU
				c.Subjects = append(c.Subjects, p.subject(sys))
			}
		}
		if len(forms) > 0 {
			c.Fresh = func(round int) {
				l.Draw(s.Seed, round)
				for _, p := range forms {
					p.pack()
				}
			}
		}
		return s.Compete(c)
	})
}

// packedTexts are the queries of a round one behind the other, as GetBatchBytes
// takes them.
type packedTexts struct {
	*work.TextLookups
	form    string // comes behind a system's name
	data    []byte
	offsets []int32
	err     error // of the round
}

// withPackedTexts calls body with memory for the queries as bytes and offsets:
// Go's own, and that of pando.Buffer. Where there is no room, a line says so,
// and body goes without.
func withPackedTexts(s *contest.Session, l *work.TextLookups, body func([]*packedTexts) error) (err error) {
	n := len(l.Q)
	size := int(1.1*l.T.Mean*float64(n)) + contest.Mega // more than random keys will ever need
	if need, free := 2*int64(size+4*n), contest.FreeMemory(); size > math.MaxInt32 || need > free {
		s.Skip("%s as bytes: %s of them need %s in two places, %s of memory are free; one place has 2 GiB at most",
			l.T.Label, contest.SizeText(n), contest.GiB(need), contest.GiB(free))
		return body(nil)
	}
	data, err := pando.NewBuffer[byte](size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	offsets, err := pando.NewBuffer[int32](n + 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, offsets.Close()) }()
	return body([]*packedTexts{
		{TextLookups: l, form: ", bytes", data: make([]byte, size), offsets: make([]int32, n+1)},
		{TextLookups: l, form: ", bytes in pando.Buffer", data: data.Slice(), offsets: offsets.Slice()},
	})
}

// pack puts the queries of a round one behind the other.
func (p *packedTexts) pack() {
	at := 0
	for i, q := range p.Q {
		p.offsets[i] = int32(at)
		at += len(q)
	}
	if p.err = nil; at > len(p.data) {
		p.err = fmt.Errorf("%d bytes of keys, and room for %d", at, len(p.data))
		return
	}
	p.offsets[len(p.Q)] = int32(at)
	contest.ForPieces(len(p.Q), func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(p.data[p.offsets[i]:], p.Q[i])
		}
	})
}

func (p *packedTexts) subject(sys *ours.FrozenText) *contest.Subject {
	var hits int
	return &contest.Subject{
		System: sys.Name() + p.form,
		Bytes:  sys.BytesPerEntry(),
		Do: func(ops int) error {
			if p.err == nil {
				hits = sys.GetBytes(p.data, p.offsets[:ops+1], p.Vals[:ops], p.Found[:ops])
			}
			return p.err
		},
		Check: func(ops int) error { return p.Check(ops, hits) },
	}
}
