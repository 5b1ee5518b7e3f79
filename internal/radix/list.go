package radix

// list is items in chunks: however many there are, to add one or to hand all of them over takes no time, where
// a slice would have to be copied now and then, while others wait.
type list[T any] struct {
	full [][]T
	last []T
}

const (
	listChunk = 4096 // items of a chunk
	listLeast = 256  // from how many on a chunk is handed over as it is
)

// add adds an item.
func (l *list[T]) add(x T) {
	if len(l.last) == listChunk {
		l.full, l.last = append(l.full, l.last), make([]T, 0, listChunk)
	}
	l.last = append(l.last, x)
}

// take adds all items of another list, which has none then.
func (l *list[T]) take(from *list[T]) {
	l.full, from.full = append(l.full, from.full...), nil
	if len(from.last) >= listLeast {
		l.full, from.last = append(l.full, from.last), nil
		return
	}
	for _, x := range from.last {
		l.add(x)
	}
	from.last = from.last[:0]
}

// some takes up to n items out; none if there are none. They are good until one is added.
func (l *list[T]) some(n int) []T {
	if k := len(l.full); len(l.last) == 0 && k > 0 {
		l.last, l.full = l.full[k-1], l.full[:k-1]
	}
	at := max(len(l.last)-n, 0)
	out := l.last[at:]
	l.last = l.last[:at]
	return out
}

// each calls f with all items.
func (l *list[T]) each(f func(x *T)) {
	for _, chunk := range append(l.full[:len(l.full):len(l.full)], l.last) {
		for i := range chunk {
			f(&chunk[i])
		}
	}
}
