package live_test

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando/internal/epoch"
	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/live"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/stall"
)

// turn frees a value that a map no longer has, and ends generations as far as a writer may.
func turn(m typed[[]byte], generations int) {
	gens := live.GenerationsOf(m.Map)
	for range generations {
		gens.Itself().Hasten()
		gens.Reclaim()
	}
}

// A reader that is slower than two generations, beside a writer that frees values all the time,
// is done after a few tries, with the value that its key has.
func TestStoredSlowReader(t *testing.T) {
	if !stall.On {
		t.Skip("needs the build tag stalls")
	}
	defer epoch.SetPace(time.Hour)() // only the test ends generations
	for _, layout := range layouts {
		for name, read := range slowReads {
			t.Run(layout+"/"+name, func(t *testing.T) { slowly(t, layout, read) })
		}
	}
}

// slowReads read the values of keys 0 to 2, and return the first.
var slowReads = map[string]func(m typed[[]byte], keys order.Keys) []byte{
	"Get": func(m typed[[]byte], _ order.Keys) []byte {
		v, _ := m.Get(keyOf(0))
		return v
	},
	"AppendGet": func(m typed[[]byte], _ order.Keys) []byte {
		v, _ := m.AppendGet(nil, keyOf(0))
		return v
	},
	"At": func(m typed[[]byte], _ order.Keys) []byte {
		_, v, _ := m.At(0)
		return index.ValueAs[[]byte](v)
	},
	"GetBatch": func(m typed[[]byte], keys order.Keys) []byte {
		vals := make([][]byte, keys.Len())
		m.GetBatch(keys, index.ColumnOf(vals), nil)
		return vals[0]
	},
	"AppendBatch": func(m typed[[]byte], keys order.Keys) []byte {
		offsets := make([]int64, keys.Len()+1)
		data, _ := m.AppendBatch(nil, keys, offsets, nil)
		return data[:offsets[1]]
	},
	"cursor": func(m typed[[]byte], _ order.Keys) []byte {
		c := m.Cursor()
		defer c.Done()
		c.Move(index.NoEdge, false)
		_, v, _ := c.Next()
		return index.ValueAs[[]byte](v)
	},
	"cursor that appends": func(m typed[[]byte], _ order.Keys) []byte {
		c := m.Cursor()
		defer c.Done()
		c.Move(index.NoEdge, false)
		_, v, _ := c.NextAppend(nil)
		return v
	},
	"walk": func(m typed[[]byte], _ order.Keys) (first []byte) {
		for w := m.Walk(immortal{}, index.NoEdge, index.NoEdge, false, 3); w.Next(); {
			if first == nil {
				first = bytes.Clone(index.SliceOf[[]byte](index.ColumnAt(w.Vals, w.N))[0])
			}
			w.At = w.N
		}
		return first
	},
	"Update": func(m typed[[]byte], _ order.Keys) (old []byte) {
		m.Update(keyOf(0), func(v []byte, _ bool) ([]byte, bool) {
			old = v
			return v, true
		})
		return old
	},
}

// slowly has something read while other values of the same leaf are exchanged and generations end at
// each step.
func slowly(t *testing.T, layout string, read func(m typed[[]byte], keys order.Keys) []byte) {
	rnd := seed.Rand(t)
	m := mapOf[[]byte](t, layout)
	want := sealed(rnd, 0, 20_000)
	m.Set(keyOf(0), want)
	for n := range 2 {
		m.Set(keyOf(1+n), sealed(rnd, 1+n, 20_000))
	}
	const enough = 100
	steps, busy := 0, false
	defer stall.Use(func(point string) {
		if !strings.HasPrefix(point, "live: ") || busy || steps > enough {
			return
		}
		steps++
		busy = true
		m.Set(keyOf(1), sealed(rnd, 1, 20_000))
		turn(m, 3)
		busy = false
	})()
	got := read(m, keysOf(layout, 0, 1, 2))
	if !bytes.Equal(got, want) {
		t.Errorf("a slow reader gets %d bytes: %v", len(got), broken(0, got))
	}
	if steps > enough {
		t.Errorf("a reader was made to begin anew for %d steps", enough)
	}
	if c := live.GenerationsOf(m.Map).Itself(); c.Held() {
		t.Error("a generation is held, and the reader is done")
	}
	gen := live.GenerationsOf(m.Map).Gen()
	m.Set(keyOf(1), sealed(rnd, 1, 20_000))
	if turn(m, 3); live.GenerationsOf(m.Map).Current(gen) {
		t.Error("no generation ends, and the reader is done")
	}
}

// A change that waits for room is not refused because a slow reader holds a generation meanwhile.
func TestStoredLimitBesideSlowReader(t *testing.T) {
	if !stall.On {
		t.Skip("needs the build tag stalls")
	}
	const limit, size = 1 << 20, 20_000
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			rnd := seed.Rand(t)
			m := limited(t, layout, limit)
			defer m.Close()
			n := 0
			for m.Set(keyOf(n), sealed(rnd, n, size)) == nil {
				n++
			}
			m.DeleteRange(keyOf(0), keyOf(1))
			c := live.GenerationsOf(m.Map).Itself()
			gen := c.Hold()
			waits, held := 0, true
			defer stall.Use(func(point string) {
				if point == "live: waits for room" && held {
					if waits++; waits == 100 {
						c.Release(gen)
						held = false
					}
				}
			})()
			for i := 2; held && i < 1000; i++ {
				k := 2 + i%(n-2)
				if err := m.Set(keyOf(k), sealed(rnd, k, size)); err != nil {
					t.Fatalf("exchange %d, after %d looks: %v", i, waits, err)
				}
			}
			if held {
				t.Error("no exchange has waited")
			}
		})
	}
}

// allocated returns the bytes that a function has allocated.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

// A reader that appends values takes memory once, however often it has to begin anew.
func TestAppendAgainInItsRoom(t *testing.T) {
	const n, size, tries = 300, 8000, 10
	for _, layout := range layouts {
		rnd := seed.Rand(t)
		m := mapOf[[]byte](t, layout)
		ns, vals := []int{}, [][]byte{}
		for i := range n {
			ns, vals = append(ns, i), append(vals, sealed(rnd, i, size))
		}
		m.Set(keyOf(n), sealed(rnd, n, n*size))
		m.SetBatch(keysOf(layout, ns...), vals)
		failing := 0
		live.PutBetween(m.Map, live.Between{Current: func() bool {
			failing--
			return failing < 0
		}})
		keys, offsets, prefix := keysOf(layout, ns...), make([]int64, n+1), []byte("what the caller has")
		for name, read := range map[string]func() []byte{
			"AppendBatch": func() []byte {
				data, _ := m.AppendBatch(bytes.Clone(prefix), keys, offsets, nil)
				return data[:offsets[1]]
			},
			"AppendGet": func() []byte {
				v, _ := m.AppendGet(bytes.Clone(prefix), keyOf(n))
				return v
			},
			"NextAppend": func() []byte {
				c := m.Cursor()
				defer c.Done()
				c.Move(index.Edge{Key: keyOf(n)}, false)
				_, v, _ := c.NextAppend(bytes.Clone(prefix))
				return v
			},
		} {
			t.Run(layout+"/"+name, func(t *testing.T) {
				var once, often []byte
				failing = 0
				first := allocated(func() { once = read() })
				failing = tries
				again := allocated(func() { often = read() })
				if !bytes.HasPrefix(once, prefix) || !bytes.Equal(once, often) {
					t.Error("another try has other bytes")
				}
				if again > first+first/2 {
					t.Errorf("%d bytes are allocated for %d tries, %d for one", again, tries+1, first)
				}
			})
		}
	}
}

// An update whose key has another value, in memory that has the old one's reference again, tells its
// function the new one.
func TestUpdateOfMemoryUsedAgain(t *testing.T) {
	defer epoch.SetPace(time.Hour)() // only the test ends generations
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			const size = 40_000 // long values have runs, of which the last that was freed is the next
			rnd := seed.Rand(t)
			m := mapOf[[]byte](t, layout)
			first, second, last := sealed(rnd, 0, size), sealed(rnd, 0, size), sealed(rnd, 0, size)
			for bytes.Equal(last, first) {
				last = sealed(rnd, 0, size)
			}
			m.Set(keyOf(0), first)
			word := live.WordOf(m.Map, keyOf(0))
			var told [][]byte
			if err := m.Update(keyOf(0), func(old []byte, _ bool) ([]byte, bool) {
				if told = append(told, old); len(told) == 1 {
					m.Set(keyOf(0), second)
					turn(m, 3)
					m.Set(keyOf(0), last)
					if live.WordOf(m.Map, keyOf(0)) != word {
						t.Fatal("the memory of the value is not used again")
					}
				}
				return append(old, "and more"...), true
			}); err != nil {
				t.Fatal(err)
			}
			if len(told) != 2 || !bytes.Equal(told[0], first) || !bytes.Equal(told[1], last) {
				t.Errorf("the function was told %d values; the last is what the key had: %t", len(told), bytes.Equal(told[len(told)-1], last))
			}
			if v, _ := m.Get(keyOf(0)); !bytes.HasPrefix(v, last) || !bytes.HasSuffix(v, []byte("and more")) {
				t.Errorf("the key has %d bytes of another value", len(v))
			}
		})
	}
}

// An update whose key still has the value that its function was told does not read it again,
// whatever else made the tree try again.
func TestUpdateReadsOnce(t *testing.T) {
	const size = 4 << 20
	defer epoch.SetPace(time.Hour)() // values may be used again otherwise
	for _, layout := range layouts {
		m := mapOf[string](t, layout)
		m.Set(keyOf(0), strings.Repeat("a long value ", size/13))
		tries := 0
		live.PutBetween(m.Map, live.Between{Update: func(uint64) { tries++ }})
		runs := 0
		took := allocated(func() {
			m.Update(keyOf(0), func(string, bool) (string, bool) {
				runs++
				for n := range 300 { // the leaf of a B+-tree is split
					m.Set(keyOf(1+n), "another value")
				}
				return "the next value", true
			})
		})
		if runs != 1 || layout == "bplus" && tries < 2 || took > size+size/2 {
			t.Errorf("%s: %d runs of the function, %d tries: %d bytes are allocated for a value of %d", layout, runs, tries, took, size)
		}
	}
}
