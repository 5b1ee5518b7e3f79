package steps

import (
	"encoding/binary"
	"fmt"

	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/device/kernel"
	"github.com/pando-index/pando/internal/device/ptx"
	"github.com/pando-index/pando/internal/layout"
)

// longestQuery is the longest string that the kernel compares itself.
const longestQuery = 1 << 10

// SearchStrings is Search for a layout of strings.
func SearchStrings(tree layout.StringsOnDevice, look layout.LocatedParts, texts []string, seed uint64) (*Kernel, error) {
	im, err := tree.StringImage()
	if err != nil {
		return nil, err
	}
	size := len(im.Strings)
	for _, p := range im.Parts {
		size += len(p)
	}
	if size > MostImage {
		return nil, fmt.Errorf("the strings have %d bytes; %d are the most that the interpreter is given", size, MostImage)
	}
	texts = texts[:min(len(texts), MostQueries)]
	rec := &Kernel{Seed: seed}
	w := &watch{rec: rec, seen: map[[3]int]int{}}
	dev := ptx.New(ptx.Seed(seed), ptx.Memory(4*MostImage), ptx.Steps(mostSteps), ptx.Observe(w))
	defer dev.Close()
	stream, err := dev.NewStream()
	if err != nil {
		return nil, err
	}
	up := &upload{dev: dev, stream: stream, watch: w}
	var parts []device.Ptr
	for i, p := range im.Parts {
		parts = append(parts, up.copy(p, region{what: Node, locate: func(at int) (int, int, bool) { return look.LocatePart(i, at) }}))
	}
	whole := up.copy(im.Strings, region{what: Strings, each: 1})
	bytes, offsets := joined(texts)
	keys, ends := up.copy(bytes, region{what: Queries, each: 1}), up.copy(offsets, region{what: Queries, each: 4})
	out := make([]byte, 4*len(texts))
	answers := up.copy(out, region{what: Answers, each: 4})
	if up.err != nil {
		return nil, up.err
	}
	set, err := kernel.LoadOnly(dev, im.Resident.Kernels())
	if err != nil {
		return nil, err
	}
	if err := im.Resident.Place(parts, whole, longestQuery); err != nil {
		return nil, err
	}
	if err := im.Resident.Search(set, stream, new(kernel.Params), keys, ends, len(texts), answers); err != nil {
		return nil, err
	}
	if err := stream.CopyOut(out, answers); err != nil {
		return nil, err
	}
	if err := stream.Synchronize(); err != nil {
		return nil, err
	}
	for i := range texts {
		rec.Ranks = append(rec.Ranks, binary.LittleEndian.Uint32(out[4*i:])&^(kernel.WordsEqual|kernel.WordsUnsure))
	}
	rec.Work = dev.Instructions()
	return rec, nil
}

// joined returns strings one behind the other, and where each begins and the last
// ends.
func joined(texts []string) (bytes, offsets []byte) {
	offsets = make([]byte, 4, 4*len(texts)+4)
	for _, t := range texts {
		bytes = append(bytes, t...)
		offsets = binary.LittleEndian.AppendUint32(offsets, uint32(len(bytes)))
	}
	return bytes, offsets
}

// upload copies memory to a device, and keeps the first error.
type upload struct {
	dev    *ptx.Device
	stream device.Stream
	watch  *watch
	err    error
}

func (u *upload) copy(memory []byte, r region) (at device.Ptr) {
	r.size = max(len(memory), 4)
	if u.err == nil {
		at, u.err = u.dev.Alloc(r.size)
	}
	if u.err == nil && len(memory) > 0 {
		u.err = u.stream.CopyIn(at, memory)
	}
	r.base = at
	u.watch.regions = append(u.watch.regions, r)
	return at
}
