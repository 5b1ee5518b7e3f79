//go:build guard

package arena

// guard is the size of the pages around a block that cannot be read: a multiple
// of every page size there is.
const guard = 64 << 10
