package pando_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
	"github.com/pando-index/pando/internal/words"
)

// Strings that are too long for one layout are kept in another, unless the first
// was asked for. Here 64 strings are too long that take 10 kB together, not
// 4 GiB.
func TestStringsTooLongAreKeptApart(t *testing.T) {
	defer func(most uint64) { words.MostPageBytes = most }(words.MostPageBytes)
	words.MostPageBytes = 10_000
	rng := seed.Rand(t)
	few, some := make([]string, 40), make([]string, 5000) // one page, many of which some are too long
	for i := range few {
		few[i] = fmt.Sprintf("%02d", i) + strings.Repeat("long", 100)
	}
	for i := range some {
		some[i] = fmt.Sprintf("%04d", i)
		if i >= 3000 && i < 3064 {
			some[i] += strings.Repeat("long", 100)
		}
	}
	for _, keys := range [][]string{few, some} {
		t.Run(fmt.Sprint(len(keys)), func(t *testing.T) {
			keptApart(t, keys)
			rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			keptApart(t, keys)
		})
	}
}

func keptApart(t *testing.T, keys []string) {
	t.Helper()
	_, vals := descending(len(keys))
	ix := facetest.MustFreeze(t, keys, vals)
	m := facetest.NewModel(slices.Clone(keys), slices.Clone(vals), func(a, b uint64) bool { return a == b })
	if err := facetest.CheckIndex(ix, m, keys[:30]); err != nil {
		t.Error(err)
	}
	s := ix.Stats()
	if s.Layout != pando.Apart {
		t.Errorf("layout %v", s.Layout)
	}
	path := filepath.Join(t.TempDir(), "index.pando")
	if err := ix.Save(path); err != nil {
		t.Fatal(err)
	}
	opened, err := pando.Open[string, uint64](path)
	if err != nil {
		t.Fatal(err)
	}
	opened.Close()
	ix.Close()

	room := s.TotalBytes + 40*int64(len(keys)) + 8192 // to sort them
	if err := failing(keys, vals, pando.MemoryLimit(room))(); err != nil {
		t.Errorf("limit of all that is needed: %v", err)
	}
	checkBad(t, []bad{
		{"compressed", failing(keys, vals, pando.Layout(pando.Compressed)), pando.ErrTooLong, []string{"leave Layout out"}},
		{"limit", failing(keys, vals, pando.MemoryLimit(s.TotalBytes/2)), pando.ErrMemoryLimit, []string{"needs"}},
	})
}
