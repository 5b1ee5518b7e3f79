package pando

import "io"

// Save writes the index to a file, which Open makes an index again. The file
// appears at path whole or not at all: it is written to a temporary file in
// the same directory, synced and renamed, so that a full disk or a kill at any
// moment leaves the file that was there before as it was. A program that has
// the old file open keeps being served from it.
//
// Values that hold pointers and do not marshal themselves need the option
// Values, and give ErrValues without. Where path is a link, the file it points to
// is replaced, or made if it is not there. A file that replaces another takes
// over its mode, and its owner and group where this process may give files away.
// A process that is killed may leave a hidden file (.pando-save-….tmp) behind,
// which the next Save to the same path removes.
func (f *Frozen[K, V]) Save(path string) error { return f.c.Save(path) }

// WriteTo writes the index to w, the same bytes that Save puts into a file. It
// goes over the index twice, since checksums come first.
func (f *Frozen[K, V]) WriteTo(w io.Writer) (int64, error) {
	return f.c.WriteTo(w)
}
