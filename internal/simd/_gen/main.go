// Command _gen writes the assembly of packages simd, papers/fast and papers/hbplus
// with avo. One run writes one instruction set; go generate in these packages runs
// it for each.
package main

import (
	"flag"
	"log"

	. "github.com/mmcloughlin/avo/build"
)

func main() {
	name := flag.String("isa", "", "avx2 or avx512")
	part := flag.String("part", "search", "which routines: search, methods, step, stairs, sse, extract, packed, regular or vector")
	flag.Parse()
	var isa vectors
	switch *name {
	case "avx2":
		isa = avx2{}
	case "avx512":
		isa = avx512{}
	default:
		log.Fatalf("-isa %q: want avx2 or avx512", *name)
	}
	ConstraintExpr("!noasm")
	switch *part {
	case "search":
		search(isa)
	case "methods":
		methods(isa)
	case "step":
		steps(isa)
	case "stairs":
		stairs(isa)
	case "sse":
		sse()
	case "packed":
		packed(isa)
	case "extract":
		extracts()
	case "regular":
		regulars(isa)
	case "vector":
		vectorOps(isa)
	default:
		log.Fatalf("-part %q: want search, methods, step, stairs, sse, extract, packed, regular or vector", *part)
	}
	checkParts()
	Generate()
}

// search emits the routines that take batches down a whole tree.
func search(isa vectors) {
	for _, bits := range []int{32, 64} {
		w := width(bits)
		rank(places{}, isa, w, linear)
		down(places{}, isa, w)
		find(places{}, isa, w)
		get(places{}, isa, w)
		seek(isa, w)
	}
	if isa.name() == "AVX2" {
		prefetch()
		stream()
		pause()
	}
}

// methods emits the searches of nodes that the HB+-tree paper compares, for package
// papers/hbplus.
func methods(isa vectors) {
	for _, w := range []width{32, 64} {
		rank(places{}, isa, w, hierarchical)
		if isa.name() == "AVX2" {
			rank(places{}, isa, w, sequential) // scalar code: one copy serves both
		}
	}
}

// width is the bits of a key: 32 or 64.
type width int

func (w width) bytes() int { return int(w) / 8 }
func (w width) keys() int  { return 512 / int(w) } // keys in a node

// method is a way to search a node; Method of package papers/hbplus describes each.
type method string

const (
	linear       method = ""
	hierarchical method = "Hierarchical"
	sequential   method = "Sequential"
)
