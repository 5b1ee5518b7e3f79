package bplus

// Move makes Next return the first entry from key on, or down from it, whatever
// the cursor has returned before. It allocates nothing.
func (c *Cursor[C]) Move(key C, down bool) {
	c.pos, c.down, c.end = key, down, false
	c.restart()
}
