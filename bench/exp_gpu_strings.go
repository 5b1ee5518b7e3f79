package main

import (
	"errors"
	"fmt"
	"math"
	"runtime/debug"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/index"
)

var gpuStrings = &experiment{
	name:     "gpu-strings",
	about:    "a batch of Get, strings to uint64, random hits, as Go strings and as bytes and offsets, on all cores and through the GPU",
	per:      "one key looked up, copies to the GPU and back included",
	caseName: "keys",
	sizes:    []int{16 * mega},
	queries:  8 * mega,
	run:      runGPUStrings,
}

func runGPUStrings(s *session) error {
	if there, err := s.hasGPU(); !there {
		return err
	}
	for _, n := range s.sizes {
		for _, kind := range textKinds[:2] {
			debug.FreeOSMemory() // frees the memory of the previous ones
			if !s.room(kind.label, n, 5*(kind.bytes+stringHeader+textValue), "use a smaller --n") {
				continue
			}
			if err := gpuStringContest(s, newTexts(s, kind, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

func gpuStringContest(s *session, t *texts) error {
	var systems []*frozenText
	defer func() { closeAll(systems) }()
	add := func(name string, opts ...pando.Option) error {
		f, err := freezeTexts(t, name, allCores(), opts...)
		if err == nil {
			systems = append(systems, f)
		}
		return err
	}
	if err := add(namePandoCPU); err != nil {
		return err
	}
	if err := add(namePandoGPU, pando.On(pando.GPU(s.gpu))); err != nil {
		return err
	}
	// Asked through the face, a hybrid that is slower than the CPU would leave
	// the GPU out: here it is to be measured.
	defer func(prefer bool) { index.PreferCPU = prefer }(index.PreferCPU)
	index.PreferCPU = false
	if err := add(namePandoGPU+", strings on the host", pando.On(pando.Hybrid(s.gpu))); err != nil {
		return err
	}
	l := newTextLookups(s, t)
	c := &contest{n: len(t.keys), threads: allCores(), label: t.label, ops: s.queries,
		fresh: func(round int) { l.draw(s.seed, round) }}
	for i, sys := range systems {
		sub := l.subject(sys)
		sub.reference = i == 0
		c.subjects = append(c.subjects, sub)
	}
	return withPackedTexts(s, l, func(forms []*packedTexts) error {
		for _, p := range forms {
			for _, sys := range systems[:2] { // all on the CPU, all on the GPU
				c.subjects = append(c.subjects, p.subject(sys))
			}
		}
		if len(forms) > 0 {
			c.fresh = func(round int) {
				l.draw(s.seed, round)
				for _, p := range forms {
					p.pack()
				}
			}
		}
		return s.compete(c)
	})
}

// packedTexts are the queries of a round one behind the other, as GetBatchBytes
// takes them.
type packedTexts struct {
	*textLookups
	form    string // comes behind a system's name
	data    []byte
	offsets []int32
	err     error // of the round
}

// withPackedTexts calls body with memory for the queries as bytes and offsets:
// Go's own, and that of pando.Buffer. Where there is no room, a line says so,
// and body goes without.
func withPackedTexts(s *session, l *textLookups, body func([]*packedTexts) error) (err error) {
	n := len(l.q)
	size := int(1.1*l.t.mean*float64(n)) + mega // more than random keys will ever need
	if need, free := 2*int64(size+4*n), freeMemory(); size > math.MaxInt32 || need > free {
		s.skip("%s as bytes: %s of them need %s in two places, %s of memory are free; one place has 2 GiB at most",
			l.t.label, sizeText(n), gib(need), gib(free))
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
		{textLookups: l, form: ", bytes", data: make([]byte, size), offsets: make([]int32, n+1)},
		{textLookups: l, form: ", bytes in pando.Buffer", data: data.Slice(), offsets: offsets.Slice()},
	})
}

// pack puts the queries of a round one behind the other.
func (p *packedTexts) pack() {
	at := 0
	for i, q := range p.q {
		p.offsets[i] = int32(at)
		at += len(q)
	}
	if p.err = nil; at > len(p.data) {
		p.err = fmt.Errorf("%d bytes of keys, and room for %d", at, len(p.data))
		return
	}
	p.offsets[len(p.q)] = int32(at)
	forPieces(len(p.q), func(_, lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(p.data[p.offsets[i]:], p.q[i])
		}
	})
}

func (p *packedTexts) subject(sys *frozenText) *subject {
	var hits int
	return &subject{
		system: sys.Name() + p.form,
		bytes:  sys.BytesPerEntry(),
		do: func(ops int) error {
			if p.err == nil {
				hits = sys.GetBytes(p.data, p.offsets[:ops+1], p.vals[:ops], p.found[:ops])
			}
			return p.err
		},
		check: func(ops int) error { return p.check(ops, hits) },
	}
}
