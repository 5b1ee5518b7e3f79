//go:build invariants

package invariant

// On reports whether invariants are checked.
const On = true
