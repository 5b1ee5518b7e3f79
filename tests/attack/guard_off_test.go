//go:build !guard

package attack

// tags are those that this was built with, as a command has them.
const tags = ""
