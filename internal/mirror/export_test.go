package mirror

// Stale returns the share of the last batch that had to be repeated.
func (m *Mirror[C]) Stale() float64 {
	m.updating.Lock()
	defer m.updating.Unlock()
	return m.stale
}
