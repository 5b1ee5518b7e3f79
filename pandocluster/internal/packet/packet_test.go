package packet

import (
	"math/rand/v2"
	"testing"

	"github.com/pando-index/pando/internal/seed"
)

// What was appended is read, and of a message that is cut short nothing is made up.
func TestRead(t *testing.T) {
	b := Bytes(Bool(Bytes(Uint(nil, 1<<40), "a key"), true), []byte{1, 2})
	r := Read(b)
	if n, k, v, d := r.Uint(), r.String(), r.Bool(), r.Bytes(); n != 1<<40 || k != "a key" || !v || len(d) != 2 || r.Err() != nil || len(r.Rest()) != 0 {
		t.Error(n, k, v, d, r.Err())
	}
	for end := range b {
		r := Read(b[:end])
		r.Uint()
		r.Text()
		r.Bool()
		if r.Bytes(); r.Err() == nil {
			t.Errorf("a message of %d bytes was read from %d", len(b), end)
		}
	}
}

// Damaged messages are errors, or something else: never a panic, and never more memory than they have bytes.
func TestDamaged(t *testing.T) {
	rng := seed.Rand(t)
	for range 10_000 {
		b := make([]byte, rng.IntN(20))
		for i := range b {
			b[i] = byte(rand.N(256))
		}
		r := Read(b)
		for range 5 {
			switch rng.IntN(4) {
			case 0:
				r.Uint()
			case 1:
				r.Bytes()
			case 2:
				r.Byte()
			case 3:
				if n := r.Count(); n > len(b) {
					t.Fatal(n)
				}
			}
		}
	}
}
