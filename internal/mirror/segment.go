package mirror

import (
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"time"

	"github.com/pando-index/pando/internal/arena"
	"github.com/pando-index/pando/internal/bplus"
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/simd"
)

// segment is the mirrored nodes in the device's memory, upper nodes first, and
// the host's table of them. Nodes of a tree are numbered in chunks; each chunk
// of the tree has one in the segment.
type segment[C order.Code] struct {
	cpu    *bplus.Tree[C]
	dev    device.Device
	set    *kernel.Set
	stream device.Stream
	room   int64

	at             device.Ptr
	bytes          int
	on             kernel.Mirror
	uppers, leaves chunks
	sums           []uint64 // of each upper node in the mirror, to tell whether it has changed
	words          []uint64 // of each pilot in the mirror, its leaf's
	seed           maphash.Seed

	stage  stage
	params kernel.Params
	moved  int           // nodes that the last update has copied
	took   time.Duration // time of that, without the walk
	err    error
}

// chunks is where chunks of a tree are in the segment.
type chunks struct {
	size, most int
	at         map[uint32]uint32
}

// slot returns the place of a node in the segment, and false if there is no
// chunk left.
func (c *chunks) slot(number uint32) (uint32, bool) {
	size := uint32(c.size)
	chunk, ok := c.at[number/size]
	if !ok {
		if len(c.at) == c.most {
			return 0, false
		}
		chunk = uint32(len(c.at))
		c.at[number/size] = chunk
	}
	return chunk*size + number%size, true
}

func (c *chunks) slots() int { return c.size * c.most }

// stage is page-locked memory for nodes on their way, and where they arrive.
type stage struct {
	host  []byte
	at    device.Ptr
	moves []uint32 // of each node: the line that it goes to, and its first line here
	used  int      // bytes of nodes
	n     int
}

// stageNodes is the number of nodes that travel together.
const stageNodes = 1024

var errFull = errors.New("mirror: the tree has outgrown its mirror")

// unknown stands for the word of a pilot that is not there.
const unknown = ^uint64(0)

// init takes the memory that does not depend on the tree's size.
func (s *segment[C]) init() (err error) {
	s.seed = maphash.MakeSeed()
	g, bytes := &s.stage, stageNodes*(8+bplus.UpperImage[C]())
	if g.host, err = s.dev.HostAlloc(bytes); err != nil {
		return err
	}
	g.moves = arena.As[uint32](g.host[:8*stageNodes])
	g.at, err = s.dev.Alloc(bytes)
	return err
}

// reserve makes room for the tree as it is, and some more; the mirror's contents
// are lost.
func (s *segment[C]) reserve() error {
	uppers, leaves, _ := s.cpu.NodesInUse()
	upperSlots, leafSlots := bplus.ChunkNodes[C]()
	s.uppers = chunks{upperSlots, uppers + uppers/4 + 2, map[uint32]uint32{}}
	s.leaves = chunks{leafSlots, leaves + leaves/4 + 2, map[uint32]uint32{}}
	upperBytes := s.uppers.slots() * bplus.UpperImage[C]()
	bytes := upperBytes + s.leaves.slots()*bplus.PilotImage[C]()
	if uint64(bytes/simd.LineBytes) > math.MaxUint32 { // kernels number lines
		return kernel.ErrTooLarge
	}
	if bytes > s.bytes {
		if s.at != 0 {
			if err := s.dev.Free(s.at); err != nil {
				return err
			}
		}
		s.at, s.bytes = 0, 0
		if s.room > 0 && int64(bytes) > s.room {
			return fmt.Errorf("%w: a mirror of %d bytes, %d are left", device.ErrOutOfMemory, bytes, s.room)
		}
		at, err := s.dev.Alloc(bytes)
		if err != nil {
			return err
		}
		s.at, s.bytes = at, bytes
	}
	s.on = kernel.Mirror{
		Uppers: s.at, Pilots: s.at + device.Ptr(upperBytes),
		UpperCount: uint32(s.uppers.slots()), PilotCount: uint32(s.leaves.slots()),
		UpperLines: uint32(bplus.UpperImage[C]() / simd.LineBytes), PilotLines: uint32(bplus.PilotImage[C]() / simd.LineBytes),
	}
	s.sums, s.words = make([]uint64, s.uppers.slots()), make([]uint64, s.leaves.slots())
	for i := range s.words {
		s.words[i] = unknown
	}
	return s.stream.Fill(s.at, ^uint32(0), bytes) // no pilot is one that may be read
}

// walkLeaves is the number of leaves that are visited with the tree's structure
// locked: some ten microseconds.
const walkLeaves = 512

// update brings the mirror up to date: by the nodes that have changed, or by all
// of them. Where the tree has outgrown the mirror, it is made anew.
func (s *segment[C]) update(whole bool) error {
	for {
		err := s.updateOnce(whole || s.at == 0)
		if !errors.Is(err, errFull) {
			return err
		}
		whole = true
	}
}

func (s *segment[C]) updateOnce(whole bool) error {
	s.moved, s.err, s.took, s.stage.n, s.stage.used = 0, nil, 0, 0, 0
	if whole {
		if err := s.reserve(); err != nil {
			return err
		}
	}
	for key, more := C(0), true; more && s.err == nil; {
		key, more = s.cpu.Walk(key, walkLeaves, s)
		if s.err == nil && s.stage.n > stageNodes/4 { // while the structure is not locked
			s.err = s.flush()
		}
	}
	if s.err != nil {
		return s.err
	}
	if err := s.flush(); err != nil {
		return err
	}
	return s.setRoot()
}

// setRoot lets searches begin at the root as it is now.
func (s *segment[C]) setRoot() error {
	root, height := s.cpu.Root()
	of := &s.uppers
	if height == 0 {
		of = &s.leaves
	}
	at, ok := of.slot(root)
	if !ok {
		return errFull
	}
	s.on.Root, s.on.Height = at, height
	return nil
}

// Upper copies an upper node, if it is another than in the mirror.
func (s *segment[C]) Upper(number uint32, bottom bool) {
	if s.err != nil {
		return
	}
	at, ok := s.uppers.slot(number)
	if !ok {
		s.err = errFull
		return
	}
	image := s.image(bplus.UpperImage[C]())
	if s.err != nil {
		return
	}
	of := &s.uppers
	if bottom {
		of = &s.leaves
	}
	refs := s.cpu.CopyUpper(number, image)
	for i, r := range refs {
		if refs[i], ok = of.slot(r); !ok {
			s.err = errFull
			return
		}
	}
	if sum := maphash.Bytes(s.seed, image); sum != s.sums[at] { // equal by chance: searches repeat some more
		s.sums[at] = sum
		s.keep(len(image), at*s.on.UpperLines)
	}
}

// Pilot copies the pilot of a leaf, if the leaf has changed. One that is being
// changed is left out, and out of the mirror.
func (s *segment[C]) Pilot(number uint32) {
	if s.err != nil {
		return
	}
	at, ok := s.leaves.slot(number)
	if !ok {
		s.err = errFull
		return
	}
	if s.cpu.PilotWord(number) == s.words[at] {
		return
	}
	image := s.image(bplus.PilotImage[C]())
	if s.err != nil {
		return
	}
	if word, ok := s.cpu.CopyPilot(number, image); ok {
		s.words[at] = word
		s.keep(len(image), uint32((s.on.Pilots-s.on.Uppers)/simd.LineBytes)+at*s.on.PilotLines)
	}
}

// image returns memory for one more node, which is on its way only after keep.
func (s *segment[C]) image(bytes int) []byte {
	if s.stage.n == stageNodes {
		if s.err = s.flush(); s.err != nil {
			return nil
		}
	}
	g := &s.stage
	from := 8*stageNodes + g.used
	return g.host[from : from+bytes]
}

func (s *segment[C]) keep(bytes int, line uint32) {
	g := &s.stage
	g.moves[2*g.n], g.moves[2*g.n+1] = line, uint32(g.used/simd.LineBytes)
	g.used += bytes
	g.n++
	s.moved++
}

// flush sends the nodes that were gathered: one copy, and one kernel that puts
// them in their places.
func (s *segment[C]) flush() error {
	begun, g := time.Now(), &s.stage
	if g.n > 0 {
		if err := s.stream.CopyIn(g.at, g.host[:8*stageNodes+g.used]); err != nil {
			return err
		}
		if err := s.set.MirrorScatter(s.stream, &s.params, &s.on, g.at+8*stageNodes, g.at, g.n); err != nil {
			return err
		}
	}
	err := s.stream.Synchronize()
	g.n, g.used = 0, 0
	s.took += time.Since(begun)
	return err
}
