package pandostore

import (
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// requestKind is what a request is.
type requestKind uint8

const (
	setting       requestKind = iota // a key to a value
	swapping                         // the same, and the old value is asked for
	deleting                         // a key
	updating                         // a key by a function
	poppingMin                       // the first entry
	poppingMax                       // the last entry
	batching                         // many keys
	deletingRange                    // from one key to another
	syncing                          // nothing is changed; all before is to be durable
	marking                          // nothing is changed; a checkpoint begins here
)

// single reports whether a request is about one key that is known before it is done.
func (k requestKind) single() bool { return k <= updating }

// pops reports whether a request takes an entry from an end.
func (k requestKind) pops() bool { return k == poppingMin || k == poppingMax }

// request is a change that a goroutine waits for.
type request struct {
	kind  requestKind
	key   order.Probe
	val   index.Value
	f     func(old index.Value, had bool) (index.Value, bool)
	batch index.Batch
	coded []byte // the bytes of val, as EncodeOne returns them
	found []bool

	// lead is sent true if the goroutine is to lead the next group, and false when the
	// request is done.
	lead chan bool

	// The results.
	old      index.Value
	had      bool
	n        int
	err      error
	panicked any  // by f
	exited   bool // f has ended its goroutine
	mark     mark
}

// mark is where a checkpoint begins: the segment, the number of the next operation, and
// the tree of that moment.
type mark struct {
	segment, next uint64
	moment        moment
}

func newRequest(kind requestKind) *request { return &request{kind: kind, lead: make(chan bool, 1)} }
