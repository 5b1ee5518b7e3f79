package pando

import (
	"fmt"
	"reflect"
)

// String describes the index in a few words, for logs and debuggers: its type,
// entries, layout, memory and device. Unlike other methods it may be called after
// Close, and it does not read a snapshot of a Tree that has not been read yet.
func (f *Frozen[K, V]) String() string {
	return inWords("Frozen", reflect.TypeFor[K](), reflect.TypeFor[V](), f.c.Words())
}

// String describes the tree in a few words, for logs and debuggers. It may be
// called after Close.
func (t *Tree[K, V]) String() string {
	return inWords("Tree", reflect.TypeFor[K](), reflect.TypeFor[V](), t.c.Words())
}

// inWords returns the text of String.
func inWords(name string, key, val reflect.Type, words string) string {
	return fmt.Sprintf("pando.%s[%v,%v]{%s}", name, key, val, words)
}
