package kernel

import (
	_ "embed"
	"fmt"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/simd"
)

//go:generate clang-19 -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib --cuda-feature=+ptx70 -O3 -S text.cu -o text.ptx

//go:embed text.ptx
var textPTX string

// TextSource is the kernels of text.cu.
var TextSource = Source{textPTX, []string{"textFind"}}

// Flags in a result of TextFind beside the entry's number, and the largest
// number of entries that this leaves room for.
const (
	TextEqual  = 1 << 31 // the full keys are equal
	TextUnsure = 1 << 30 // the full keys must be compared
	MaxText    = TextUnsure - 1
)

// Text describes a list of strings in a device's memory, in the form that the
// kernel reads: struct Text of text.cu, field by field.
type Text struct {
	Root, Nodes, Words, Links, Pages device.Ptr
	Bytes                            device.Ptr // 0: full keys are not on the device
	next                             [simd.MaxLevels + 1]uint32
	levels, fanout, leaves, last     uint32
	Distinct, LastPage, Entries      uint32
	Plain                            uint32 // 1: the root distinguishes all pages
	Longest                          uint32 // longer keys are not compared on the device
	_                                uint32
}

// SetRoot describes the tree of the root's words.
func (t *Text) SetRoot(tree *simd.Tree) error {
	d, err := NewTree(tree, t.Root, 0)
	if err != nil {
		return err
	}
	if t.Entries > MaxText {
		return fmt.Errorf("%w: %d strings", ErrTooLarge, t.Entries)
	}
	t.next, t.levels, t.fanout, t.leaves, t.last = d.Next, d.Levels, d.Fanout, d.Leaves, d.Last
	return nil
}

// textParams are the arguments of TextFind.
type textParams struct {
	text          Text
	keys, offsets device.Ptr
	n             uint32
	_             uint32
	out           device.Ptr
}

// TextFind finds for each of n strings the first entry (u32) that is not below
// it, as far as partial keys tell, together with the flags above. String i has
// the bytes of keys from offsets[i] to offsets[i+1] (u32).
func (s *Set) TextFind(st device.Stream, p *Params, t *Text, keys, offsets device.Ptr, n int, out device.Ptr) error {
	p.text = textParams{text: *t, keys: keys, offsets: offsets, n: uint32(n), out: out}
	return st.Launch(s.kernels["textFind"], gridOf(n), argsOf(&p.text))
}

// LoadOnly loads the kernels of one source, without those of search.cu.
func LoadOnly(d device.Device, src Source) (*Set, error) {
	s := &Set{kernels: map[string]device.Kernel{}}
	return s, s.add(d, src)
}
