package pando_test

import (
	"strings"
	"testing"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
	"github.com/pando-index/pando/internal/seed"
)

// Bytes are looked up as strings are, without an allocation, and not kept.
func TestBytesAsKeys(t *testing.T) {
	rng := seed.Rand(t)
	d, v := facetest.Strings[string](), facetest.Uint64Values
	keys, vals := facetest.ManyEntries(2000, d, v, rng)
	model := facetest.NewModel(keys, vals, v.Same)
	asked := facetest.Probes(model, d, 500, rng)
	for _, layout := range []pando.LayoutKind{pando.Compressed, pando.Apart} {
		raw := make([][]byte, len(keys))
		for i, k := range keys {
			raw[i] = []byte(k)
		}
		ix, err := pando.FreezeBytes(raw, vals, pando.Layout(layout))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range raw {
			clear(b) // nothing of them is kept
		}
		if err := facetest.CheckIndex(ix, model, asked[:50]); err != nil {
			t.Fatal(err)
		}
		for _, k := range asked {
			b := []byte(k)
			want, has := model.Get(k)
			if got, ok := ix.GetBytes(b); got != want || ok != has || ix.HasBytes(b) != has || ix.RankBytes(b) != model.Rank(k) {
				t.Fatalf("%q: %d, %v, rank %d", k, got, ok, ix.RankBytes(b))
			}
		}
		b := []byte(asked[3])
		if n := testing.AllocsPerRun(50, func() { ix.GetBytes(b); ix.HasBytes(b); ix.RankBytes(b) }); n > 0 && !seed.RaceDetector {
			t.Errorf("%v: %v allocations", layout, n)
		}
		ix.Close()
	}
	numbers := facetest.MustFreeze(t, []int64{1}, []uint32{1})
	defer numbers.Close()
	if text := facetest.PanicOf(func() { numbers.GetBytes(nil) }); !strings.Contains(text, "int64") {
		t.Error(text)
	}
}
