package pando

import (
	"fmt"
	"reflect"

	"github.com/pando-index/pando/internal/index"
)

// String describes the index in a few words, for logs and debuggers: its type,
// entries, layout, memory and device. Unlike other methods it may be called after
// Close, and it does not read a snapshot of a Tree that has not been read yet.
func (f *Frozen[K, V]) String() string { return f.c.string() }

// String describes the tree in a few words, for logs and debuggers. It may be
// called after Close.
func (t *Tree[K, V]) String() string { return t.c.string() }

// types are those of keys and values.
type types struct{ key, val reflect.Type }

func typesOf[K Key, V any]() types { return types{reflect.TypeFor[K](), reflect.TypeFor[V]()} }

func (t types) String() string { return fmt.Sprintf("[%v,%v]", t.key, t.val) }

// inWords returns the text of String: "1000 entries, pairs, 18.0 KiB, cpu".
func inWords(s index.Stats) string {
	entries := "entries"
	if s.Len == 1 {
		entries = "entry"
	}
	return fmt.Sprintf("%d %s, %s, %s, %v", s.Len, entries, s.Layout, inBytes(s.TotalBytes), s.Device)
}

// inBytes returns a number of bytes in the unit that leaves few digits.
func inBytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n)/(1<<10), 0
	for ; size >= 1000 && unit < 4; unit++ {
		size /= 1 << 10
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGTP"[unit])
}
