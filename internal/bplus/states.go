package bplus

// states holds the kept states of leaves, by the leaves' numbers. Leaves that a
// tree has taken together have their states together: a map of all of them is
// slower, and grows by being copied.
type states map[uint32]*statePage

const statesInRow = 64

// statePage is states of leaves in a row: 0 for none, else twice the number above
// that of a state, and 1 more if it is whole.
type statePage [statesInRow]uint32

// get returns the state of a leaf, if there is one.
func (s states) get(x uint32) (st state, ok bool) {
	page := s[x/statesInRow]
	if page == nil {
		return st, false
	}
	n := page[x%statesInRow]
	return state{n>>1 - 1, n&1 == 1}, n != 0
}

// put sets the state of a leaf.
func (s states) put(x uint32, st state) {
	page := s[x/statesInRow]
	if page == nil {
		page = new(statePage)
		s[x/statesInRow] = page
	}
	n := (st.at + 1) << 1
	if st.whole {
		n++
	}
	page[x%statesInRow] = n
}

// take removes the state of a leaf and returns it, if there is one.
func (s states) take(x uint32) (st state, ok bool) {
	if st, ok = s.get(x); ok {
		s[x/statesInRow][x%statesInRow] = 0
	}
	return st, ok
}

// all yields the states and their leaves. States may be taken meanwhile.
func (s states) all(yield func(x uint32, st state) bool) {
	for i, page := range s {
		for j, n := range page {
			if n != 0 && !yield(i*statesInRow+uint32(j), state{n>>1 - 1, n&1 == 1}) {
				return
			}
		}
	}
}
