package pandohttp

import (
	"bytes"

	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pando-index/pando/internal/origin"
)

// format is a way to write rows, and to read them.
type format struct {
	name  string
	media []string // the first is what answers say
	sink  string   // of package table
	text  bool     // it has no strings that are not UTF-8
}

// formats are in the order in which they are taken where a client has no wish.
var formats = []*format{
	{"jsonl", []string{"application/x-ndjson", "application/jsonl", "application/x-jsonlines", "application/ndjson"}, "jsonl", true},
	{"json", []string{"application/json"}, "jsonl", true},
	{"csv", []string{"text/csv"}, "csv", false},
	{"tsv", []string{"text/tab-separated-values"}, "tsv", false},
	{"arrow", []string{"application/vnd.apache.arrow.stream", "application/vnd.apache.arrow.file"}, "arrow", false},
	{"parquet", []string{"application/vnd.apache.parquet"}, "parquet", false},
}

func formatNames() (names []string) {
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// form is how an answer is written.
type form struct {
	*format
	coding string // "", gzip or zstd
}

// wish is an entry of Accept or Accept-Encoding.
type wish struct {
	what string
	q    float64
}

// wishes reads a header such as text/csv;q=0.5, */*;q=0.1.
func wishes(header string) (all []wish) {
	for _, part := range strings.Split(header, ",") {
		what, params, _ := strings.Cut(part, ";")
		w := wish{strings.ToLower(strings.TrimSpace(what)), 1}
		for _, p := range strings.Split(params, ";") {
			if name, value, _ := strings.Cut(strings.TrimSpace(p), "="); strings.EqualFold(strings.TrimSpace(name), "q") {
				q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
				if err != nil || !(q >= 0 && q <= 1) {
					q = 0
				}
				w.q = q
			}
		}
		if w.what != "" {
			all = append(all, w)
		}
	}
	return all
}

// wanted returns how much a client wants something that has these names, where the most exact entry counts: 0 is
// not at all.
func wanted(all []wish, names []string) (q float64) {
	exact := -1
	for _, w := range all {
		for _, name := range names {
			n := -1
			kind, _, slashed := strings.Cut(name, "/")
			switch {
			case w.what == name:
				n = 2
			case slashed && w.what == kind+"/*":
				n = 1
			case w.what == "*/*", w.what == "*":
				n = 0
			}
			if n > exact || n == exact && n >= 0 && w.q > q {
				exact, q = n, w.q
			}
		}
	}
	return q
}

// formOf returns how a request wants its answer to be written.
func formOf(r *http.Request, name string) (f form, err error) {
	if name != "" {
		i := slices.IndexFunc(formats, func(f *format) bool { return f.name == name })
		if i < 0 {
			return f, wrong(http.StatusBadRequest, "there is no format %q; take one of %s", origin.Clip(name), strings.Join(formatNames(), ", "))
		}
		f.format = formats[i]
	} else if accept := strings.Join(r.Header.Values("Accept"), ","); accept != "" {
		all, best := wishes(accept), 0.0
		for _, one := range formats {
			if q := wanted(all, one.media); q > best {
				f.format, best = one, q
			}
		}
		if f.format == nil {
			var media []string
			for _, one := range formats {
				media = append(media, one.media[0])
			}
			return f, wrong(http.StatusNotAcceptable, "nothing that Accept names can be written; take one of %s, or ?format= with one of %s", strings.Join(media, ", "), strings.Join(formatNames(), ", "))
		}
	} else {
		f.format = formats[0]
	}
	if f.name == "parquet" { // it is compressed by itself
		return f, nil
	}
	all, best := wishes(strings.Join(r.Header.Values("Accept-Encoding"), ",")), 0.0
	for _, coding := range []string{"zstd", "gzip"} {
		if q := wanted(all, []string{coding}); q > best {
			f.coding, best = coding, q
		}
	}
	return f, nil
}

// compressed returns a writer that compresses, which Close ends, or one that does not.
func (f form) compressed(w io.Writer) (io.WriteCloser, error) {
	switch f.coding {
	case "gzip":
		return gzip.NewWriterLevel(w, gzip.BestSpeed)
	case "zstd":
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(1<<20), zstd.WithLowerEncoderMem(true))
	}
	return plain{w}, nil
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }

// bodyFormat returns the format of a body, "" where its content is to tell.
func bodyFormat(r *http.Request) (string, error) {
	said := r.Header.Get("Content-Type")
	if said == "" {
		return "", nil
	}
	media, _, err := mime.ParseMediaType(said)
	if err == nil {
		if media == "application/octet-stream" {
			return "", nil
		}
		for _, f := range formats {
			if f.name != "json" && slices.Contains(f.media, media) {
				return f.name, nil
			}
		}
	}
	names := []string{}
	for _, f := range formats {
		if f.name != "json" {
			names = append(names, f.media[0])
		}
	}
	return "", wrong(http.StatusUnsupportedMediaType, "bodies of the type %q are not read; say one of %s, as in curl -H 'Content-Type: %s' --data-binary @FILE", origin.Clip(said), strings.Join(names, ", "), "text/csv")
}

// lines makes an array of JSON of its lines.
type lines struct {
	w     io.Writer
	begun bool
	owing bool // the line that came last has others behind it, if more comes
}

func (a *lines) Write(p []byte) (int, error) {
	n := len(p)
	var b bytes.Buffer
	for len(p) > 0 {
		switch {
		case !a.begun:
			b.WriteByte('[')
		case a.owing:
			b.WriteString(",\n")
		}
		a.begun, a.owing = true, false
		line, rest, whole := bytes.Cut(p, []byte("\n"))
		b.Write(line)
		p, a.owing = rest, whole
	}
	if _, err := a.w.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return n, nil
}

// end writes the end of the array.
func (a *lines) end() error {
	text := "]\n"
	if !a.begun {
		text = "[]\n"
	}
	_, err := io.WriteString(a.w, text)
	return err
}
