package pandoview

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"

	"github.com/pando-index/pando/internal/index"
	"github.com/pando-index/pando/internal/order"
	"github.com/pando-index/pando/internal/radix"
	"github.com/pando-index/pando/internal/steps"
)

// radixSteps is a recording of a radix tree on the CPU.
type radixSteps struct {
	Note    string       `json:"note"`
	Dropped int          `json:"dropped"`
	Events  []radixEvent `json:"events"`
}

type radixEvent struct {
	Step  string      `json:"step"`
	Key   string      `json:"key,omitempty"`
	At    []uint32    `json:"at"`
	Byte  string      `json:"byte,omitempty"` // of the link that it is about
	Was   string      `json:"was,omitempty"`  // type of the node that was there before
	Nodes []radixNode `json:"nodes"`
	Gone  []uint32    `json:"gone,omitempty"`
	Root  uint32      `json:"root"`
}

type radixNode struct {
	ID     uint32      `json:"id"`
	Type   string      `json:"type"`
	Room   int         `json:"room"`
	Depth  int         `json:"depth"`
	Prefix string      `json:"prefix"` // the end of it, if it is long
	Links  []radixLink `json:"links"`
}

type radixLink struct {
	Byte string `json:"byte"`
	To   uint32 `json:"to"`
	Leaf bool   `json:"leaf"`
}

// radix records changes of a radix tree of keys around one.
func (h *handler) radix(in *index.Inside, q query) (any, error) {
	key, n, seed, err := drawn(in, q, steps.MostRadix, 40)
	if err != nil {
		return nil, err
	}
	bits := in.Type.Bits()
	var keys []string
	if bits == 0 {
		keys = in.Texts(key, steps.RadixKeys)
	} else {
		keys = steps.Digits(bits, in.Codes(key, steps.RadixKeys))
		key.Text = steps.Digits(bits, []uint64{key.Code})[0]
	}
	var rec steps.Radix
	switch q.Get("op") {
	case "insert":
		rec, err = steps.RadixInsert(keys, key.Text, n)
	case "delete":
		rec, err = steps.RadixDelete(keys, key.Text, n)
	case "beside":
		rec, err = steps.RadixBeside(keys, key.Text, n)
	default:
		rec, err = steps.RadixBatch(keys, n, seed)
	}
	if err != nil {
		return nil, err
	}
	return digits{in, bits}.events(rec), nil
}

// radixed reports whether changes of an index are shown on a radix tree: those of
// strings, and of numbers that are in one.
func radixed(in *index.Inside) bool { return in.Type.Bits() == 0 || in.Stats().Layout == "radix" }

// digits makes text of the bytes of keys.
type digits struct {
	in   *index.Inside
	bits int // of numbers, 0 for strings
}

func (d digits) events(rec steps.Radix) radixSteps {
	out := radixSteps{Note: rec.Note, Dropped: rec.Dropped, Events: []radixEvent{}}
	for _, e := range rec.Events {
		x := radixEvent{Step: string(e.Step), At: append([]uint32{}, e.At...), Byte: d.byte(e.Byte), Was: e.Was, Nodes: []radixNode{}, Gone: e.Gone, Root: e.Root}
		if e.Step != steps.RadixStart && e.Step != steps.RadixFinished && e.Step != steps.RadixPromise && e.Step != steps.RadixSnapshot {
			x.Key = d.key(e.Key)
		}
		for _, n := range e.Nodes {
			x.Nodes = append(x.Nodes, d.node(n))
		}
		out.Events = append(out.Events, x)
	}
	return out
}

func (d digits) node(n radix.Seen) radixNode {
	out := radixNode{ID: n.ID, Type: n.Type, Room: n.Room, Depth: len(n.Prefix), Prefix: d.prefix(n.Prefix), Links: []radixLink{}}
	for _, l := range n.Links {
		out.Links = append(out.Links, radixLink{d.byte(l.Byte), l.To, l.Leaf})
	}
	return out
}

// key returns a whole key as text.
func (d digits) key(key string) string {
	if d.bits == 0 {
		return show(d.in, order.Probe{Text: key})
	}
	var b [8]byte
	copy(b[8-d.bits/8:], key)
	return show(d.in, order.Probe{Code: binary.BigEndian.Uint64(b[:])})
}

// prefix returns the bytes that keys have in common as text: the end of them, where
// they are many.
func (d digits) prefix(p string) string {
	const most = 24
	if d.bits > 0 {
		return fmt.Sprintf("%x", p)
	}
	if len(p) > most {
		p = "…" + p[len(p)-most:]
	}
	return strings.ToValidUTF8(p, "\uFFFD")
}

// byte returns the byte of a link as text: of numbers as two digits.
func (d digits) byte(b int) string {
	switch {
	case b == -1:
		return "end"
	case b < 0:
		return ""
	case d.bits == 0 && b > ' ' && b < 0x7f:
		return string(rune(b))
	}
	return fmt.Sprintf("%02x", b)
}

// notRadix is the answer where only a radix tree has something to show.
func notRadix(op string) error {
	return problemf(http.StatusNotImplemented, "%s is shown for strings and for numbers in layout radix only", op)
}
