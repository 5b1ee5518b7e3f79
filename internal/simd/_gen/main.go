// Command _gen writes the assembly of package simd with avo. One run writes
// one instruction set; go generate in package simd runs it for each.
package main

import (
	"flag"
	"log"

	. "github.com/mmcloughlin/avo/build"
)

func main() {
	name := flag.String("isa", "", "avx2 or avx512")
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
	for _, bits := range []int{32, 64} {
		w := width(bits)
		rank(isa, w, linear)
		rank(isa, w, hierarchical)
		if *name == "avx2" {
			rank(isa, w, sequential) // scalar code: one copy serves both
		}
		down(isa, w)
		find(isa, w)
		get(isa, w)
		seek(isa, w)
	}
	if *name == "avx2" {
		prefetch()
		stream()
		pause()
	}
	Generate()
}

// width is the bits of a key: 32 or 64.
type width int

func (w width) bytes() int { return int(w) / 8 }
func (w width) keys() int  { return 512 / int(w) } // keys in a node

// method is a way to search a node; package simd's Method says what each does.
type method string

const (
	linear       method = ""
	hierarchical method = "Hierarchical"
	sequential   method = "Sequential"
)
