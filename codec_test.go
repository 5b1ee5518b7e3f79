package pando_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pando-index/pando"
	"github.com/pando-index/pando/internal/facetest"
)

// shy marshals itself, unless it is empty.
type shy struct{ text string }

func (s shy) MarshalBinary() ([]byte, error) {
	if s.text == "" {
		return nil, errors.New("too shy")
	}
	return []byte("<" + s.text + ">"), nil
}

func (s *shy) UnmarshalBinary(b []byte) error {
	s.text = strings.Trim(string(b), "<>")
	return nil
}

// Values that are strings, bytes or marshal themselves need no codec.
func TestSavedWithoutCodec(t *testing.T) {
	type word string
	type blob []byte
	at := func(s string) *url.URL { u, _ := url.Parse(s); return u }
	now := time.Now().Round(0)
	t.Run("strings", roundTrip([]string{"", "a", "\xff\x00"}, func(a, b string) bool { return a == b }))
	t.Run("named strings", roundTrip([]word{"", "a"}, func(a, b word) bool { return a == b }))
	t.Run("bytes", roundTrip([][]byte{nil, {}, {1, 2}}, bytes.Equal))
	t.Run("named bytes", roundTrip([]blob{nil, {1}}, func(a, b blob) bool { return bytes.Equal(a, b) }))
	t.Run("times", roundTrip([]time.Time{{}, now, now.UTC()}, time.Time.Equal))
	t.Run("addresses", roundTrip([]netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("1.2.3.4")}, func(a, b netip.Addr) bool { return a == b }))
	t.Run("pointers", roundTrip([]*url.URL{at("http://a/b?c"), at("")}, func(a, b *url.URL) bool { return a.String() == b.String() }))
	t.Run("own", roundTrip([]shy{{"a"}, {"b"}}, func(a, b shy) bool { return a == b }))
}

func roundTrip[V any](vals []V, same func(a, b V) bool) func(t *testing.T) {
	return func(t *testing.T) {
		keys := make([]uint64, len(vals))
		for i := range keys {
			keys[i] = uint64(i)
		}
		path := filepath.Join(t.TempDir(), "index")
		ix := facetest.MustFreeze(t, keys, vals)
		defer ix.Close()
		if err := ix.Save(path); err != nil {
			t.Fatal(err)
		}
		back, err := pando.Open[uint64, V](path, pando.Verified())
		if err != nil {
			t.Fatal(err)
		}
		defer back.Close()
		if _, got := back.RangeBatch([]uint64{0}, []uint64{uint64(len(vals))}, 0).At(0); !slices.EqualFunc(got, vals, same) {
			t.Errorf("%v came back as %v", vals, got)
		}
	}
}

// Neither do those of a tree.
func TestTreeSavedWithoutCodec(t *testing.T) {
	tree, err := pando.TreeOf([]uint64{1, 2}, []shy{{"a"}, {"b"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	path := filepath.Join(t.TempDir(), "tree")
	if err := tree.Save(path); err != nil {
		t.Fatal(err)
	}
	back, err := pando.OpenTree[uint64, shy](path)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if a, b := keyed(back.Get(1)), keyed(back.Get(2)); a != "a" || b != "b" || back.Len() != 2 {
		t.Errorf("came back as %q and %q", a, b)
	}
}

// keyed returns the text of what Get has found.
func keyed(s shy, found bool) string {
	if !found {
		return "nothing"
	}
	return s.text
}

// What cannot be marshaled is named.
func TestSavedNotWithoutCodec(t *testing.T) {
	path := filepath.Join(t.TempDir(), "index")
	for what, err := range map[string]error{
		"a value that fails": facetest.MustFreeze(t, []uint64{1, 2}, []shy{{"a"}, {}}).Save(path),
		"nil":                facetest.MustFreeze(t, []uint64{1, 2}, []*url.URL{{}, nil}).Save(path),
		"struct":             facetest.MustFreeze(t, []uint64{1}, []struct{ text string }{{"a"}}).Save(path),
	} {
		if !errors.Is(err, pando.ErrValues) || what != "struct" && !strings.Contains(err.Error(), "value 1") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// An index prints in a few words, closed or not.
func TestString(t *testing.T) {
	ix := facetest.MustFreeze(t, []uint64{1}, []uint64{2}, pando.On(pando.CPU))
	tree, err := pando.TreeOf([]float64{1, 2}, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	snap := tree.Snapshot()
	for _, c := range []struct {
		ix         fmt.Stringer
		start, end string
	}{
		{ix, "pando.Frozen[uint64,uint64]{1 entry, pairs, ", " KiB, cpu}"},
		{tree, "pando.Tree[float64,string]{2 entries, bplus, ", "iB, cpu}"},
		{snap, "pando.Frozen[float64,string]{snapshot}", ""},
	} {
		if got := fmt.Sprint(c.ix); !strings.HasPrefix(got, c.start) || !strings.HasSuffix(got, c.end) || len(got) > 90 {
			t.Errorf("prints %s", got)
		}
	}
	ix.Close()
	tree.Close()
	snap.Close()
	for _, s := range []fmt.Stringer{ix, tree, snap} {
		if got := s.String(); !strings.HasSuffix(got, "{closed}") {
			t.Errorf("closed: %s", got)
		}
	}
}
