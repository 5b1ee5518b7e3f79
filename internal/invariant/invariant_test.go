package invariant

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	Check(true, "never seen")
	defer func() {
		if s, ok := recover().(string); !ok || !strings.HasSuffix(s, "3 of 2") {
			t.Errorf("recovered %q", s)
		}
	}()
	Check(false, "%d of %d", 3, 2)
}
