package pando

import "github.com/pando-index/pando/internal/index"

// FileInfo is the information in a file's header.
type FileInfo struct {
	Path     string        `json:"path"`
	Version  int           `json:"version"` // of the format
	Key      string        `json:"key"`     // type of keys, by kind and width: "int64", "float32", "string"
	Value    string        `json:"value"`   // type of values: "uint64", "struct{uint32,float32}", "none", "encoded string"
	Len      int           `json:"len"`     // entries
	Layout   string        `json:"layout"`  // its name, as LayoutKind.String returns it
	Levels   int           `json:"levels"`  // inner levels of the tree; 0 for strings
	Fanout   int           `json:"fanout"`  // children of an inner node; 0 for strings
	Bytes    int64         `json:"bytes"`   // size of the file
	Note     string        `json:"note,omitempty"`
	Sections []FileSection `json:"sections"`
}

// FileSection is a part of a file: docs/format.md says which there are.
type FileSection struct {
	Name     string `json:"name"`
	Offset   int64  `json:"offset"`
	Bytes    int64  `json:"bytes"`
	Checksum uint32 `json:"checksum"` // CRC-32C
}

// Inspect reads the header of a file, and makes the checks of Open that do not
// depend on the types of key and value.
func Inspect(path string) (FileInfo, error) {
	f, err := index.OpenFile(path)
	if err != nil {
		return FileInfo{}, index.Public(err)
	}
	defer f.Close()
	info := FileInfo{
		Path: path, Version: int(f.Version), Key: f.Key, Value: f.Value, Len: int(f.Entries), Layout: f.Format.Name,
		Levels: int(f.Levels), Fanout: int(f.Fanout), Bytes: f.Size, Note: f.Note,
	}
	for _, s := range f.Sections {
		info.Sections = append(info.Sections, FileSection{s.Kind.String(), s.Offset, s.Bytes, s.Checksum})
	}
	return info, nil
}

// Verify reads a whole file: every checksum must be right, and keys, nodes and
// offsets must be in order. It needs no types.
func Verify(path string) error {
	f, err := index.OpenFile(path)
	if err != nil {
		return index.Public(err)
	}
	defer f.Close()
	return index.Public(f.Verify())
}
