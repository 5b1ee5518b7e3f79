package kernel

import (
	_ "embed"
	"fmt"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/simd"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S words.cu -o words.ptx

//go:embed words.ptx
var wordsPTX string

// WordsSource is the kernels of words.cu.
var WordsSource = Source{&wordsPTX, []string{"wordsFind"}}

// Flags of a result of WordsFind beside the entry, and the greatest number of
// entries that they leave room for.
const (
	WordsEqual  = 1 << 31 // the full keys are equal
	WordsUnsure = 1 << 30 // full keys are to be looked at
	MaxWords    = WordsUnsure - 1
)

// Words is a list of strings in a device's memory, as the kernel takes it:
// struct Words of words.cu, field by field.
type Words struct {
	Root, Nodes, Words, Links, Pages device.Ptr
	Bytes                            device.Ptr // 0: full keys are not on the device
	next, last                       [simd.MaxLevels + 1]uint32
	levels, fanout, leaves           uint32
	Distinct, LastPage, Entries      uint32
	Plain                            uint32 // 1: the root distinguishes all pages
	Longest                          uint32 // longer keys are not compared on the device
}

// SetRoot describes the tree of the root's words.
func (t *Words) SetRoot(tree *simd.Tree) error {
	d, err := NewTree(tree, t.Root, 0)
	if err != nil {
		return err
	}
	if t.Entries > MaxWords {
		return fmt.Errorf("%w: %d strings", ErrTooLarge, t.Entries)
	}
	t.next, t.last, t.levels, t.fanout, t.leaves = d.Next, d.Last, d.Levels, d.Fanout, d.Leaves
	return nil
}

// wordsParams are the arguments of WordsFind.
type wordsParams struct {
	words         Words
	keys, offsets device.Ptr
	n             uint32
	_             uint32
	out           device.Ptr
}

// WordsFind returns for each of n strings the first entry (u32) that is not below
// it, as far as partial keys tell, with its flags. String i has the bytes of keys
// from offsets[i] to offsets[i+1] (u32).
func (s *Set) WordsFind(st device.Stream, p *Params, t *Words, keys, offsets device.Ptr, n int, out device.Ptr) error {
	p.words = wordsParams{words: *t, keys: keys, offsets: offsets, n: uint32(n), out: out}
	return st.Launch(s.kernels["wordsFind"], GridOf(n), argsOf(&p.words))
}

// LoadOnly loads the kernels of some sources, without those of search.cu.
func LoadOnly(d device.Device, sources ...Source) (*Set, error) {
	s := &Set{kernels: map[string]device.Kernel{}}
	for _, src := range sources {
		if err := s.add(d, src); err != nil {
			return s, err
		}
	}
	return s, nil
}
