// Package hbplus is the code for one paper alone: Shahvarani and Jacobsen, "A Hybrid
// B+-tree as Solution for In-Memory Indexing on CPU-GPU Heterogeneous Computing Platforms"
// (SIGMOD 2016). Its trees are Pando's own, internal/implicit, bplus and mirror; README.md
// says where everything is.
//
//	nodes.go     three ways to search a node (section 4.2, appendix A)
//	updates.go   batches of updates, synchronous and asynchronous (section 5.6)
//	predict.go   the cost model (section 5.4)
//	throttle.go  a GPU that runs few blocks at a time (figure 18)
package hbplus
