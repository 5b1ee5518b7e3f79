package live

import (
	"github.com/pando-index/pando/internal/device"
	"github.com/pando-index/pando/internal/index"
)

// driver leads to the code for trees on GPUs. It is nil in a program that links no driver.
// Code that only a program with GPUs needs is reached through its methods alone, so that the
// linker leaves it out of a program that does not call LinkGPUs. So nothing else may call
// twinCodes and the like, nor may a method of a generic type, since the linker keeps the code
// that all methods of such a type call.
var driver interface {
	// attach makes a copy of a tree with values of some bytes, if that pays. It returns
	// where batches run, and why.
	attach(t Tree, c index.Config, valSize int) (Tree, index.Device, string, error)
	// solo makes a tree of soloEntries.
	solo(entries any, c index.Config) (Tree, error)
}

// LinkGPUs makes open the way to GPUs, for indexes and for trees, and has the program link
// the code for them. A nil open takes the way away. The function that it returns puts back
// the former one. Package cuda calls it as a program starts; tests put the interpreter in the
// place of a GPU.
func LinkGPUs(open func(ordinal int) (device.Device, error)) (undo func()) {
	undoIndex, before := index.LinkGPUs(open), driver
	if driver = nil; open != nil {
		driver = linked{}
	}
	return func() {
		driver = before
		undoIndex()
	}
}

// attachTree gives a tree with values of some bytes a copy on a GPU, if the program links
// a driver.
func attachTree(t Tree, c index.Config, valSize int) (Tree, index.Device, string, error) {
	if driver == nil {
		return t, index.OnCPU, index.ReasonNotLinked, nil
	}
	return driver.attach(t, c, valSize)
}

// linked is the driver of a program that has one.
type linked struct{}

func (linked) attach(t Tree, c index.Config, valSize int) (Tree, index.Device, string, error) {
	switch t := t.(type) {
	case *texts:
		return followTexts(t, valSize, c)
	case *codes[uint32]:
		return twinCodes(t, c)
	case *codes[uint64]:
		return twinCodes(t, c)
	}
	panic("live: no tree that has a copy on a GPU")
}

func (linked) solo(entries any, c index.Config) (Tree, error) {
	switch e := entries.(type) {
	case *soloEntries[uint32]:
		return newSolo(e, c)
	case *soloEntries[uint64]:
		return newSolo(e, c)
	}
	panic("live: no entries for a GPU alone")
}
