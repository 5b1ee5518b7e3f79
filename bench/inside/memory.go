package inside

import "github.com/pando-index/pando/internal/arena"

// Block is memory outside of the Go heap, in segments.
type Block = arena.Block

// Pages says what pages memory lies on.
type Pages = arena.Pages

// Pages of 4 KiB, and those that an index has.
const (
	SmallPages = arena.Small
	HugePages  = arena.HugeAll
)

// NewBlock returns segments of some sizes on huge pages, as an index has them.
func NewBlock(sizes ...int) (*Block, error) { return arena.New(sizes, 0, HugePages, 0) }

// Bytes returns the memory of a slice.
func Bytes[T any](s []T) []byte { return arena.Bytes(s) }

// As returns memory as values of a type.
func As[T any](b []byte) []T { return arena.As[T](b) }
