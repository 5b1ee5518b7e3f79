package epoch

// Patience is that of a reader which begins anew whenever its generation is no longer current.
// One that copies many bytes may need longer than two generations, and beside a writer that
// frees memory all the time it would try for ever. So after some tries it holds its generation.
// The zero Patience is that of a reader which has not begun.
//
//	var p epoch.Patience
//	for {
//		gen := p.Begin(c)
//		… read …
//		if c.Current(gen) || c.Closed() {
//			p.Done()
//			return
//		}
//	}
type Patience struct {
	tries int
	gen   uint64 // that is held
	held  *Clock // nil while none is
}

// MostTries is how often a reader tries before it holds its generation: more than a bucket of a
// batch ever does, and few enough for one that copies many bytes.
const MostTries = 3

// Begin returns the generation for a try. From the try after MostTries on it is held, and stays
// current until Done, unless the tree is closed.
func (p *Patience) Begin(c *Clock) (gen uint64) {
	if p.tries < MostTries {
		p.tries++
		return c.Gen()
	}
	return p.hold(c)
}

func (p *Patience) hold(c *Clock) (gen uint64) {
	if p.held == nil {
		p.gen, p.held = c.Hold(), c
	}
	return p.gen
}

// Done ends the last try. A Patience that is used again begins anew.
func (p *Patience) Done() {
	if p.tries = 0; p.held != nil {
		p.release()
	}
}

func (p *Patience) release() {
	p.held.Release(p.gen)
	p.held = nil
}
