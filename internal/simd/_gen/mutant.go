package main

import (
	"flag"
	"log"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Tests that look for mistakes in the protocol of simd.PutRegular have it generated
// once more: with a part left out, which one of them must notice, and with
// goroutines held up between the stores, so that others see every state there is.
var (
	without = flag.String("without", "", "the part of simd.PutRegular to leave out")
	stalls  = flag.Bool("stalls", false, "hold goroutines up in simd.PutRegular now and then")
)

// leftOut is whether emits was asked for the part to leave out.
var leftOut bool

// emits reports whether a part is emitted.
func emits(part string) bool {
	leftOut = leftOut || part == *without
	return part != *without
}

// checkParts ends the program if nothing was left out that was to be.
func checkParts() {
	if *without != "" && !leftOut {
		log.Fatalf("-without %q: there is no such part", *without)
	}
}

// stall holds a goroutine up, one time in 32.
func (u *put) stall() {
	if !*stalls {
		return
	}
	loop, on := u.label("stall"), u.label("on")
	RDTSC()
	TESTL(U32(31<<5), EAX)
	JNE(LabelRef(on))
	MOVL(U32(500), EAX)
	Label(loop)
	PAUSE()
	DECL(EAX)
	JNE(LabelRef(loop))
	Label(on)
}
