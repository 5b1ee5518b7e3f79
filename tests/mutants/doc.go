// Package mutants leaves out one part of the tree's protocol at a time, and
// demands that a test notices: see its tests, which `make mutants` runs.
package mutants
