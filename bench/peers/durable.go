package peers

// Durable is a map on disk. Whatever changes it is durable when the call returns.
type Durable interface {
	Name() string
	// Set sets one key. Several goroutines may call it.
	Set(key, val uint64) error
	// SetBatch sets many keys, in as few transactions as the system allows.
	SetBatch(keys, vals []uint64) error
	Get(key uint64) (val uint64, ok bool, err error)
	Close() error
}

// DurableMaker opens a map in a folder, which may have one already.
type DurableMaker struct {
	Name string
	Open func(dir string) (Durable, error)
}

// durables are those that this program was compiled with: builds with the tag stores have
// some, whose packages take minutes to compile.
var durables []DurableMaker

// Durables returns the peers of a store.
func Durables() []DurableMaker { return durables }

// WithoutDurables says how to get them where there are none.
const WithoutDurables = "pebble, bbolt and badger: compile with -tags stores"
