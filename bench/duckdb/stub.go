//go:build !linux && !darwin

package duckdb

import "github.com/pando-index/pando"

// Column is a table in memory with one column: here there is none.
type Column[V pando.Number] struct{}

func Load[V pando.Number](vals []V, threads int) (*Column[V], error) { return nil, ErrNoLibrary }

func (c *Column[V]) Aggregate() (count int, sum V, err error) { return 0, 0, ErrNoLibrary }
func (c *Column[V]) Version() string                          { return "" }
func (c *Column[V]) Close()                                   {}
