// Package experiments is code that only measurements need: steps on the way to
// what the product does, and ways that it does not go. It is for bench, and
// nothing else may import it.
//
//	fast.go      the optimisations of the FAST paper one by one (figure 6)
//	narrow.go    its search with vectors of 128 bits
//	sorted.go    batches that are sorted before they are answered (figure 11)
//	predict.go   the cost model of the HB+-tree paper (section 5.4)
//	throttle.go  a GPU that runs few blocks at a time (figure 18)
//	blink.go     the latched trees of Duong's thesis on a GPU (docs/latches.md)
//	pages.go     Kaczmarek's tree of large pages on a GPU
//	textpages.go pages of strings by partial keys under a B+-tree, which change
package experiments
