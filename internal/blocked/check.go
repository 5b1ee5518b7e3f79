package blocked

import "fmt"

// Check walks through the whole tree and returns an error for the first thing
// that is not as it must be: order of keys, separators, padding, lines that
// have no leaf under them.
func (t *Tree[C]) Check() error {
	if err := t.leaves.Check(); err != nil {
		return err
	}
	for i := range t.rows {
		if err := t.checkRow(i); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tree[C]) checkRow(i int) error {
	for k := range t.rows[i].Levels {
		g := t.first[i] + k
		used := t.nodes(g)
		for x := range t.rows[i].Pages << (k * t.geo.L) {
			if err := t.checkLine(g, x, x < used); err != nil {
				return fmt.Errorf("row %d, level %d of its pages, line %d: %w", i, k, x, err)
			}
		}
	}
	return nil
}

// checkLine compares the separators of a line with the greatest key under
// each child. An unused line is all zeros.
func (t *Tree[C]) checkLine(g, x int, used bool) error {
	line := t.line(g, x)
	want := make([]C, len(line))
	if used {
		want[len(line)-1] = ^C(0)
		under := 1
		for range len(t.steps) - 1 - g {
			under *= len(line)
		}
		for j, slot := range t.slot {
			end := (x*len(line) + j + 1) * under // leaves up to this child's last
			if want[slot] = ^C(0); end < t.count {
				want[slot] = t.Key(end<<t.leaves.LeafShift - 1)
			}
		}
	}
	for j, w := range want {
		if line[j] != w {
			return fmt.Errorf("slot %d is %d, want %d", j, line[j], w)
		}
	}
	return nil
}
