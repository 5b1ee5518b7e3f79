// Package fast is the code for one paper alone: Kim et al., "FAST: Fast Architecture
// Sensitive Tree Search on Modern CPUs and GPUs" (SIGMOD 2010). The layouts that Pando has
// of it are internal/blocked, packed and words; README.md says where everything is.
//
//	steps.go      its optimisations one by one (figure 6)
//	narrow.go     its search with vectors of 128 bits
//	sorted.go     batches that are sorted before they are answered (figure 11)
//	textpages.go  pages of strings by partial keys under a B+-tree, which change
package fast
