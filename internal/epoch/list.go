package epoch

import "github.com/pando-index/pando/internal/mutant"

// Kept is a reference that is no longer part of the tree, but of snapshots.
type Kept struct {
	Ref  uint64
	Born uint64 // epoch in which it was put in: it is part of no earlier snapshot
}

// List is the references that are kept for a snapshot, in chunks: however many there are, to add
// one or to hand all of them over takes no time, where a slice would have to be copied now and
// then, while others wait.
type List struct {
	full [][]Kept
	last []Kept
}

const (
	listChunk = 4096 // references of a chunk
	listLeast = 256  // from how many on a chunk is handed over as it is
)

// Add adds a reference.
func (l *List) Add(k Kept) {
	if len(l.last) == listChunk {
		l.full, l.last = append(l.full, l.last), make([]Kept, 0, listChunk)
	}
	l.last = append(l.last, k)
}

// Take adds all references of another list, which has none then.
func (l *List) Take(from *List) {
	l.full, from.full = append(l.full, from.full...), nil
	if len(from.last) >= listLeast {
		l.full, from.last = append(l.full, from.last), nil
		return
	}
	for _, k := range from.last {
		l.Add(k)
	}
	from.last = from.last[:0]
}

// some takes up to n references out; none if there are none. They are good until one is added.
func (l *List) some(n int) []Kept {
	if k := len(l.full); len(l.last) == 0 && k > 0 {
		l.last, l.full = l.full[k-1], l.full[:k-1]
	}
	at := max(len(l.last)-n, 0)
	out := l.last[at:]
	l.last = l.last[:at]
	return out
}

// Pass takes up to n references out of the list of a snapshot that was closed. older is the list
// of the newest snapshot before it, of epoch until, and gets those that are part of that, too;
// others go to free, and all do if older is nil. Pass reports whether there were any.
func (l *List) Pass(n int, older *List, until uint64, free func(ref uint64)) bool {
	all := l.some(n)
	for _, k := range all {
		if older != nil && k.Born <= until && !(mutant.On && mutant.Is("epoch: older snapshot")) {
			older.Add(k)
			continue
		}
		free(k.Ref)
	}
	return len(all) > 0
}

// Each calls f with all references.
func (l *List) Each(f func(k *Kept)) {
	for _, chunk := range append(l.full[:len(l.full):len(l.full)], l.last) {
		for i := range chunk {
			f(&chunk[i])
		}
	}
}
