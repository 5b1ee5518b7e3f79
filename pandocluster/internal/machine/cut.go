package machine

import (
	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/mutant"
)

// Cut returns the keys of the range from one on, as they are at one moment, in the midst of no change. It returns false if
// that key is not in the range, or the range has no state.
func (m *Machine) Cut(from string) (*Moment, bool) {
	if !(mutant.On && mutant.Is("cluster: no change is half in a backup")) {
		m.turn.Lock()
		defer m.turn.Unlock()
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if !m.there || !m.bounds.Contains(from) {
		return nil, false
	}
	return &Moment{keys: m.tree.Snapshot(), bounds: Bounds{from, m.bounds.Hi}}, true
}

// Keys returns a copy of the keys of the moment, and of their values.
func (o *Moment) Keys() (*pando.Frozen[string, []byte], error) {
	return pando.FreezeSeq(o.keys.Scan(o.bounds.span().options()...))
}
