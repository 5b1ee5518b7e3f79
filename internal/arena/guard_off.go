//go:build !guard

package arena

// guard is the size of the pages around a block that cannot be read.
const guard = 0
