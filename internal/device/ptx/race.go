package ptx

import "fmt"

// touch is one remembered access to a word.
type touch struct {
	who   uint32 // thread of the launch, counted from 1; 0 for none
	stamp uint32 // the thread's clock at that time
	place uint32 // line of the PTX, shifted left by the 4 bits of mask
}

// mask returns a bit for each byte of the word that was touched.
func (t *touch) mask() uint32 { return t.place & 15 }

func (t *touch) line() int { return int(t.place >> 4) }

// cell remembers, for a word of 4 bytes, the last plain write and the last two
// other accesses by different threads.
type cell struct {
	write touch
	other [2]touch
}

const (
	pageWords = 64
	pageBytes = 4 * pageWords
)

// page holds the cells of a few words, allocated when one of them is first
// touched.
type page struct {
	age   uint64 // age of the launch or block that it belongs to
	cells [pageWords]cell
}

// shadow remembers accesses to an allocation or a block's shared memory.
// Accesses older than its current age do not count.
type shadow struct {
	age   uint64
	pages []*page
}

func (s *shadow) cell(word uint64) *cell {
	p := s.pages[word/pageWords]
	switch {
	case p == nil:
		p = &page{age: s.age}
		s.pages[word/pageWords] = p
	case p.age != s.age:
		*p = page{age: s.age}
	}
	return &p.cells[word%pageWords]
}

// renew forgets everything, and makes room for size bytes.
func (s *shadow) renew(age uint64, size int) {
	s.age = age
	if n := (size + pageBytes - 1) / pageBytes; n > len(s.pages) {
		s.pages = append(s.pages, make([]*page, n-len(s.pages))...)
	}
}

// touch records an access and checks it for a race; it returns false if there
// is one. A plain write must be ordered after every other access to its bytes,
// and any access after every plain write.
func (m *machine) touch(t *thread, in *inst, s *shadow, off, n uint64, write bool) bool {
	plainWrite := write && in.order == plain
	for end := off + n; off < end; {
		word := off / 4
		upTo := min(end, 4*word+4)
		mask := uint32(1<<(upTo-off)-1) << (off % 4)
		c := s.cell(word)
		if w := &c.write; w.who != t.who && w.who != 0 && w.mask()&mask != 0 && !m.before(w, t) {
			m.raceFault(t, in, w, "wrote", write)
			return false
		}
		now := touch{t.who, t.stamp, uint32(in.line)<<4 | mask}
		if plainWrite {
			if !m.writeCell(c, t, in, now) {
				return false
			}
		} else {
			c.note(now)
		}
		off = upTo
	}
	return true
}

// writeCell checks a plain write against the other accesses and records it.
func (m *machine) writeCell(c *cell, t *thread, in *inst, now touch) bool {
	for i := range c.other {
		o := &c.other[i]
		if o.who != t.who && o.who != 0 && o.mask()&now.mask() != 0 && !m.before(o, t) {
			m.raceFault(t, in, o, "accessed", true)
			return false
		}
	}
	if c.write.who == now.who && c.write.stamp == now.stamp {
		now.place |= c.write.mask() // the word is written in parts
	}
	c.write = now
	if now.mask() == 15 {
		c.other = [2]touch{} // accesses ordered after this write are ordered after those
	}
	return true
}

// note records an access that is not a plain write. Two are kept, so that one
// of them is another thread's than the next writer's.
func (c *cell) note(now touch) {
	if o := &c.other[0]; o.who == now.who {
		if o.stamp == now.stamp {
			now.place |= o.mask()
		}
		*o = now
		return
	}
	c.other[1] = c.other[0]
	c.other[0] = now
}

func (m *machine) raceFault(t *thread, in *inst, o *touch, did string, write bool) {
	n := uint32(m.grid.Threads)
	doing := "reads"
	if write {
		doing = "writes"
	}
	if in.order != plain {
		doing += " (atomically)"
	}
	m.fail(Race, t, in, fmt.Sprintf("%s a word that block %d, thread %d %s at line %d (%s), with no barrier or fence and atomic between",
		doing, (o.who-1)/n, (o.who-1)%n, did, o.line(), m.k.mod.line(o.line())))
}
