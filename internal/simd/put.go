package simd

import "unsafe"

// Puts is pairs on their way into the leaves of a regular tree. The assembly reads
// the fields at fixed offsets; regular_amd64_test.go checks them.
type Puts struct {
	Control *PutControl
	EpochIs uint64 // the epoch must be this once a leaf is locked
	GenIs   uint64 // the generation may be at most one above this then

	Root, Height uint64 // as in Regular, whose own are not looked at

	// Pairs in the order in which they are put. Of neighbours with one key only
	// the last counts.
	Keys, Vals unsafe.Pointer
	// Places has the leaf of each pair, times 256, as PlaceRegular sets them: they
	// may be out of date, but each leaf must have a low key below its pair's, or have
	// had one in generation GenIs. Nil, each pair is looked for from the root.
	Places *uint64
	N      int
	Dirty  *uint32 // room for N numbers of leaves

	Done    int    // pairs that were put
	Added   int    // those of them whose key was not there
	Dirtied int    // leaves, in Dirty, whose entries are to be counted from now on
	Old     uint64 // of the last pair, if its key was there: the value that it had
	Had     uint64 // 1 if it was
	Leaf    uint64 // the leaf of the last pair
}

// PutControl is the words that may stop changes of a tree.
type PutControl struct{ Epoch, Gen uint64 }

// CanPut reports whether there is a PutRegular.
func CanPut() bool { return puts && active != Go && !interrupted }

// PutRegular puts pairs one by one into their leaves, each in one change that
// others see whole or not at all, for as long as a change takes no more than a few
// lines of a leaf: a value is exchanged, a pair goes to a line with room, or to a
// full one whose entries move on to a line nearby. It ends with the first pair for
// which that is not so: its leaf is busy, must be split, or is to be kept for a
// snapshot; or the epoch or the generation is another. That pair is left to package
// bplus, whose tests compare its results with those here. CanPut must say yes.
func PutRegular[C Code](r *Regular, p *Puts) {
	putRegularAsm(bytes(r), wide[C](), bytes(p))
}
