// Package kaczmarek has the tree of one paper: Kaczmarek, "Experimental B+-tree for GPU", large
// pages in a GPU's memory that take one insert at a time, and whose values are visited all at
// once. docs/latches.md lists the changes, README.md says where everything is.
//
//	pages.cu    the tree: bytes and kernels
//	kernels.go  what launches them
//	pages.go    a tree on a device, and its Check
package kaczmarek
