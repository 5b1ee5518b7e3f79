package index_test

import (
	"github.com/pando-index/pando/internal/index"
	"reflect"
	"testing"
)

type (
	folder map[string]folder
	nested []nested
	chain  *chain
	node   struct {
		Next *node
		In   people
	}
	people map[string]node
)

// A type that leads to itself has a name, and an index of its values is made without it.
func TestTypesThatLeadToThemselves(t *testing.T) {
	for _, c := range []struct {
		typ  reflect.Type
		want string
	}{
		{reflect.TypeFor[folder](), "map[string]..."},
		{reflect.TypeFor[nested](), "[]..."},
		{reflect.TypeFor[chain](), "*..."},
		{reflect.TypeFor[node](), "struct{*struct{...},map[string]struct{...}}"},
		{reflect.TypeFor[people](), "map[string]struct{*struct{...},map[string]struct{...}}"},
		{reflect.TypeFor[map[uint8][]int8](), "map[uint8][]int8"},
	} {
		if got := index.TypeName(c.typ); got != c.want {
			t.Errorf("%v is %q, want %q", c.typ, got, c.want)
		}
	}
}
