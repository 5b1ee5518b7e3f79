package kernel

import "github.com/pando-index/pando/internal/device"

// This file is for packages that have kernels of their own, which no layout
// launches: those of papers.

// SourceOf makes a source of another package's kernels. They are in the PTX under
// these names.
func SourceOf(ptx *string, names ...string) Source { return Source{ptx, names} }

// Start launches a kernel of a set by its name. Its arguments are the fields of params,
// which the caller keeps, so that a launch allocates nothing.
func Start[P any](s *Set, st device.Stream, name string, grid device.Grid, params *P) error {
	return st.Launch(s.kernels[name], grid, argsOf(params))
}
