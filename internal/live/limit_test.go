package live_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pando-index/pando/internal/index"
)

// A change that the limit does not allow says how large the tree is, what the limit
// is, and what to do.
func TestLimitTellsFigures(t *testing.T) {
	const limit = 4 << 20
	for _, key := range []index.KeyType{index.KeyTypeOf[uint64](), index.KeyTypeOf[string]()} {
		m, err := newMap[uint64](key, index.Config{Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		for i := 0; err == nil; i++ {
			if err = m.Set(keyOf(i), 1); i > 1<<20 {
				t.Fatal("there is no limit")
			}
		}
		for _, want := range []string{fmt.Sprint(m.Stats().LeafBytes), fmt.Sprint(limit), "raise MemoryLimit"} {
			if index.CauseOf(err) != index.ErrMemoryLimit || !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
	}
}
