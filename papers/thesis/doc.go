// Package thesis has the trees of one paper: Duong, "Implementation of B-trees on GPU" (2021),
// a B+-tree and a B-link tree in a GPU's memory that many threads search and change at once,
// under latches. docs/latches.md has the protocol, README.md says where everything is.
//
//	blink.h, blink.cu  the trees: bytes, protocol, kernels
//	kernels.go         what launches them
//	blink.go           a tree on a device
//	blink_image.go     a copy of one, and its Check
//	debugger           recordings of a batch, step by step
package thesis
