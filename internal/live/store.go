package live

import (
	"reflect"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
)

// Store is a store of package pandostore without its types, for the command.
type Store interface {
	Len() int
	// Snapshot returns the entries of this moment.
	Snapshot() *index.Handle
	SetBatch(keys order.Keys, vals index.Column) error
	DeleteBatch(keys order.Keys, found []bool) (deleted int, err error)
	Checkpoint() error
	Close() error
}

// stores opens a store. Package pandostore sets it, and opts are options of its own.
var stores func(path string, key index.KeyType, typ reflect.Type, val *index.ValueType, opts any) (Store, error)

// SetStores makes f the function that OpenStore calls.
func SetStores(f func(path string, key index.KeyType, typ reflect.Type, val *index.ValueType, opts any) (Store, error)) {
	stores = f
}

// OpenStore is pandostore.Open where types are known at run time only; the program must
// import that package. typ is the Go type of keys.
func OpenStore(path string, key index.KeyType, typ reflect.Type, val *index.ValueType, opts any) (Store, error) {
	return stores(path, key, typ, val, opts)
}
