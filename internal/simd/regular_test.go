package simd

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"

	"github.com/pando-index/pando/internal/seed"
)

func TestRegularPathsEqualTheDefinition(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		bothWidths(t, regularEqual[uint32], regularEqual[uint64])
	})
}

// regularEqual searches trees of every form in batches of every length up to
// three times the distance.
func regularEqual[C Code](t *testing.T) {
	rng, rounds := seed.Rand(t), 3
	if seed.RaceDetector {
		rounds = 1
	}
	for _, fans := range regularForms() {
		for range rounds {
			g := grow[C](fans, 1+rng.IntN(5000), rng, alignedWords)
			keys := g.asks(120)
			want := g.answers(keys)
			for _, distance := range []uint64{1, 2, uint64(1 + rng.IntN(40)), RegularDistance, 1 << 40} {
				g.Distance = distance
				for n := range min(3*distance, uint64(len(keys))) + 1 {
					if err := g.check(keys[:n], want); err != nil {
						t.Fatalf("form %v, distance %d, batch of %d: %v", fans, distance, n, err)
					}
				}
			}
			keys = g.asks(3000)
			if err := g.check(keys, g.answers(keys)); err != nil {
				t.Fatalf("form %v, large batch: %v", fans, err)
			}
		}
	}
}

func (g *grown[C]) answers(keys []C) (out []regularAnswer[C]) {
	for _, k := range keys {
		out = append(out, g.ask(k))
	}
	return out
}

// check asks everything there is to ask about keys.
func (g *grown[C]) check(keys []C, want []regularAnswer[C]) error {
	before := slices.Clone(keys)
	for i, k := range keys {
		leaf, line, word := SeekRegular(&g.Regular, k)
		if w := want[i]; leaf != w.leaf || line != w.line || word != w.word {
			return fmt.Errorf("SeekRegular(%d) = leaf %d, line %d, word %#x; want %+v", k, leaf, line, word, w)
		}
	}
	places := make([]uint64, len(keys)+1)
	PlaceRegular(&g.Regular, keys, places)
	for i, k := range keys {
		if w := uint64(want[i].leaf)*256 + uint64(want[i].line); places[i] != w {
			return fmt.Errorf("PlaceRegular(%d) = %d, want %d", k, places[i], w)
		}
	}
	if places[len(keys)] != 0 {
		return fmt.Errorf("a place is written behind the end")
	}
	for _, found := range [][]bool{nil, make([]bool, len(keys)+1)} {
		if err := g.checkGet(keys, want, found); err != nil {
			return err
		}
	}
	if !slices.Equal(keys, before) {
		return fmt.Errorf("the keys have changed")
	}
	return nil
}

func (g *grown[C]) checkGet(keys []C, want []regularAnswer[C], found []bool) error {
	mark, n := ^C(0)/5, len(keys)
	vals := slices.Repeat([]C{mark}, n+1)
	again := slices.Repeat([]int32{-1}, n+1)
	for i := range found { // the wrong way round, so that all must be set
		found[i] = i == n || !want[i].found
	}
	var hits, repeat int
	for _, w := range want[:n] {
		switch {
		case w.repeat:
			repeat++
		case w.found:
			hits++
		}
	}
	if h, r := GetRegular(&g.Regular, keys, vals, found, again); h != hits || r != repeat {
		return fmt.Errorf("GetRegular = %d hits, %d again; want %d and %d", h, r, hits, repeat)
	}
	for i, k := range keys {
		w := want[i]
		val, yes := w.val, w.found
		if w.repeat { // left as they were
			val, yes = mark, !w.found
			if again[0] != int32(i) {
				return fmt.Errorf("key %d is to be repeated, but %d is next", i, again[0])
			}
			again = again[1:]
		}
		if vals[i] != val || found != nil && found[i] != yes {
			return fmt.Errorf("value of %d is %d, want %+v", k, vals[i], w)
		}
	}
	if vals[n] != mark || again[0] != -1 || found != nil && !found[n] {
		return fmt.Errorf("written behind the end")
	}
	return nil
}

func TestRegularShortResultsPanic(t *testing.T) {
	g := grow[uint64](nil, 10, seed.Rand(t), alignedWords)
	keys := make([]uint64, 3)
	for name, call := range map[string]func(){
		"places": func() { PlaceRegular(&g.Regular, keys, make([]uint64, 2)) },
		"vals":   func() { GetRegular(&g.Regular, keys, make([]uint64, 2), nil, make([]int32, 3)) },
		"found":  func() { GetRegular(&g.Regular, keys, keys, make([]bool, 2), make([]int32, 3)) },
		"again":  func() { GetRegular(&g.Regular, keys, keys, nil, make([]int32, 2)) },
	} {
		eachPath(t, func(t *testing.T) {
			if !panics(call) {
				t.Errorf("too few %s are accepted", name)
			}
		})
	}
}

// The assembly's frame is larger than the stack of a new goroutine, which has to
// grow and thereby move the keys and results on it.
func TestRegularOnANewStack(t *testing.T) {
	g := grow[uint64]([]int{2, 2, 2}, 1000, seed.Rand(t), alignedWords)
	asks := g.asks(8)
	want := g.answers(asks)
	eachPath(t, func(t *testing.T) {
		for range 100 {
			done := make(chan error)
			go func() { done <- onThisStack(g.Regular, asks, want) }()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		run := func() { _ = onThisStack(g.Regular, asks, want) }
		if n := testing.AllocsPerRun(100, run); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// onThisStack searches with everything on the goroutine's stack.
func onThisStack(r Regular, asks []uint64, want []regularAnswer[uint64]) error {
	var (
		keys, vals, places [8]uint64
		found              [8]bool
		again              [8]int32
	)
	copy(keys[:], asks)
	PlaceRegular(&r, keys[:], places[:])
	GetRegular(&r, keys[:], vals[:], found[:], again[:])
	for i, w := range want {
		leaf, line, _ := SeekRegular(&r, keys[i])
		if place := uint64(leaf)<<8 | uint64(line); places[i] != place || leaf != w.leaf || !w.repeat && (vals[i] != w.val || found[i] != w.found) {
			return fmt.Errorf("key %d: place %#x or %#x, value %d, found %v; want %+v", keys[i], places[i], place, vals[i], found[i], w)
		}
	}
	return nil
}

// A change of one leaf, and what it touches.
type changing struct {
	Change
	word, epoch, gen uint64
	lines            [3][]uint64 // destinations, a word longer than the lines before and behind
	from             [3][]uint64
}

func makeChanging(lines [3]int, shift int) *changing {
	c := &changing{word: 7 << WordSequence, epoch: 10, gen: 20}
	c.Change = Change{Word: &c.word, Was: c.word, Will: NextWord(c.word, 5), Epoch: &c.epoch, EpochIs: 10, Gen: &c.gen, GenIs: 20, Lines: lines}
	for i, n := range lines {
		c.lines[i] = alignedWords((n + 2) * LineBytes / 8)
		c.from[i] = alignedWords(n*LineBytes/8 + shift)[shift:]
		for j := range c.from[i] {
			c.from[i][j] = uint64(i+1)<<32 + uint64(j)
		}
		c.Dst[i], c.Src[i] = unsafe.Pointer(&c.lines[i][LineBytes/8]), unsafe.Pointer(unsafe.SliceData(c.from[i]))
	}
	return c
}

func TestCommitCopiesItsLines(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		for _, lines := range [][3]int{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}, {2, 3, 4}, {10, 64, 1}} {
			for shift := range 8 {
				c := makeChanging(lines, shift)
				c.gen += uint64(shift % 2) // one above is allowed
				if !Commit(&c.Change) {
					t.Fatalf("%v lines: a change without an obstacle fails", lines)
				}
				if c.word != c.Will || Entries(c.word) != 5 || c.epoch != 10 {
					t.Errorf("%v lines: word %#x, want %#x; epoch %d", lines, c.word, c.Will, c.epoch)
				}
				for i, n := range lines {
					words := n * LineBytes / 8
					want := slices.Concat(make([]uint64, 8), c.from[i][:words], make([]uint64, len(c.lines[i])-8-words))
					if !slices.Equal(c.lines[i], want) {
						t.Errorf("%v lines, source at word %d: lines %d are %x", lines, shift, i, c.lines[i])
					}
				}
			}
		}
	})
}

func TestCommitFailsAsAWhole(t *testing.T) {
	eachPath(t, func(t *testing.T) {
		for name, obstacle := range map[string]func(c *changing){
			"another sequence number": func(c *changing) { c.word += 1 << WordSequence },
			"locked":                  func(c *changing) { c.word |= WordLocked },
			"sealed":                  func(c *changing) { c.word |= WordSealed },
			"dead":                    func(c *changing) { c.word |= WordDead },
			"a later epoch":           func(c *changing) { c.epoch++ },
			"an earlier epoch":        func(c *changing) { c.epoch-- },
			"two generations later":   func(c *changing) { c.gen += 2 },
			"an earlier generation":   func(c *changing) { c.gen-- },
		} {
			c := makeChanging([3]int{2, 1, 1}, 0)
			obstacle(c)
			word, epoch, gen := c.word, c.epoch, c.gen
			if Commit(&c.Change) {
				t.Errorf("%s: Commit succeeds", name)
			}
			if c.word != word || c.epoch != epoch || c.gen != gen {
				t.Errorf("%s: word %#x, epoch %d, generation %d; want %#x, %d, %d", name, c.word, c.epoch, c.gen, word, epoch, gen)
			}
			for i := range c.lines {
				if slices.Max(c.lines[i]) != 0 {
					t.Errorf("%s: lines %d have changed", name, i)
				}
			}
		}
	})
}
