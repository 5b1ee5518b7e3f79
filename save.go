package pando

import (
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/snapshot"
)

// Save writes the index to a file, which Open makes an index again. The file
// appears at path whole or not at all: it is written to a temporary file in
// the same directory, synced and renamed, so that a full disk or a kill at any
// moment leaves what was there before as it was. A program that has the old
// file open keeps being served from it.
//
// Values that hold pointers need the option Values, and give ErrValues
// without. Where path is a link, the file it points to is replaced. A process
// that is killed may leave a hidden file (.pando-save-….tmp) behind, which the
// next Save to the same path removes.
func (f *Frozen[K, V]) Save(path string) error {
	ix := f.open()
	err := snapshot.Replace(path,
		func(w io.Writer) error { _, err := f.write(ix, w); return err },
		func() { f.done(ix) })
	if err != nil {
		return fmt.Errorf("pando: cannot save %s: %w", path, err)
	}
	return nil
}

// WriteTo writes the index to w, the same bytes that Save puts into a file. It
// goes over the index twice, since checksums come first.
func (f *Frozen[K, V]) WriteTo(w io.Writer) (int64, error) {
	return f.write(f.open(), w)
}

// write writes the index and says so only if it was open until the end.
func (f *Frozen[K, V]) write(ix *index[K, V], w io.Writer) (int64, error) {
	h, parts, err := ix.Parts(ix.values)
	if err != nil {
		return 0, err
	}
	h.Entries, h.Key, h.Value, h.ValSize = int64(ix.n), keyName[K](), valueName[V](), valSize[V]()
	n, err := snapshot.Write(w, h, parts)
	f.done(ix)
	if errors.Is(err, snapshot.ErrChanged) {
		err = fmt.Errorf("%w: %w: encode must give the same bytes each time", ErrValues, err)
	}
	return n, err
}

// Parts describes the tree and gives its sections.
func (e *fixed[K, C, V]) Parts(codec *valueCodec[V]) (snapshot.Header, []snapshot.Part, error) {
	s := treeStats(e.tree)
	h := snapshot.Header{
		Layout: e.fileLayout(), KeyBits: codeBits[C](),
		Fanout: uint32(s.Fanout), Levels: uint32(s.Levels), PageLevels: uint32(pageLevels(e.tree)),
	}
	parts := keyParts(h.Layout, e.tree.Segments())
	if inlineSize[V]() > 0 {
		return h, parts, nil
	}
	more, err := valueParts(e.rows, e.coded, codec)
	return h, append(parts, more...), err
}

// codeBits gives the bits of a code.
func codeBits[C order.Code]() uint32 {
	var c C
	return uint32(8 * unsafe.Sizeof(c))
}

// keyParts makes sections of the segments of whatever holds the keys; one more
// than those is the column of values.
func keyParts(layout snapshot.Layout, segments [][]byte) (parts []snapshot.Part) {
	kinds := append(layout.Keys(), snapshot.Column)
	for i, b := range segments {
		parts = append(parts, snapshot.Memory(kinds[i], b))
	}
	return parts
}

// Parts describes the strings and gives their sections.
func (e *words[K, V]) Parts(codec *valueCodec[V]) (snapshot.Header, []snapshot.Part, error) {
	more, err := valueParts(e.rows, e.coded, codec)
	return snapshot.Header{Layout: e.layout}, append(keyParts(e.layout, e.list.Segments()), more...), err
}
