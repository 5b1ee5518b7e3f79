// Package password keeps passwords as hashes that are slow to guess: scrypt, with a salt each.
package password

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/pando-index/pando/internal/mutant"
	"golang.org/x/crypto/scrypt"
)

// Usual is the cost of a new hash: the power of two that scrypt calls N. With blocks of 8 each look takes 32 MiB
// and some 50 ms.
const Usual = 15

const (
	blocks  = 8
	most    = 16 // 64 MiB a look
	least   = 4
	saltLen = 16
	sumLen  = 32
)

// atOnce bounds how many looks are under way, since each takes memory and a core, and strangers ask for them.
var atOnce = make(chan struct{}, 2)

// Hash is what is kept of a password.
type Hash struct {
	cost int
	salt [saltLen]byte
	sum  [sumLen]byte
}

// Impossible is a hash of no password, which takes as long as one of the usual cost to be found out.
var Impossible = Hash{cost: Usual}

// New returns a hash of a password, of the usual cost.
func New(secret []byte) Hash { return Make(secret, Usual) }

// Make returns a hash of a password, of a cost from 4 to 16.
func Make(secret []byte, cost int) Hash {
	if cost < least || cost > most {
		panic(fmt.Sprintf("password: cost %d; take %d to %d", cost, least, most))
	}
	return salted(digest(secret), cost)
}

// FromSHA256 returns a hash of the password whose SHA-256 is given, in lower-case hexadecimal digits, as redis
// keeps passwords.
func FromSHA256(digits string) (h Hash, ok bool) {
	if !isSHA256(digits) {
		return h, false
	}
	return salted([]byte(digits), Usual), true
}

func isSHA256(digits string) bool {
	_, err := hex.DecodeString(digits)
	return err == nil && len(digits) == 2*sha256.Size && strings.ToLower(digits) == digits
}

// IsSHA256 reports whether a hash is of the password whose SHA-256 is given, as FromSHA256 takes it.
func (h *Hash) IsSHA256(digits string) bool {
	return isSHA256(digits) && h.is([]byte(digits))
}

// digest returns what scrypt is given of a password: its SHA-256, since HMAC within scrypt would take
// passwords for equal that differ in zeros at the end, and since hashes of redis' can then be taken.
func digest(secret []byte) []byte {
	sum := sha256.Sum256(secret)
	return hex.AppendEncode(nil, sum[:])
}

func salted(digits []byte, cost int) Hash {
	h := Hash{cost: cost}
	_, _ = rand.Read(h.salt[:]) // which never fails
	h.sum = h.of(digits)
	return h
}

func (h *Hash) of(digits []byte) (sum [sumLen]byte) {
	atOnce <- struct{}{}
	defer func() { <-atOnce }()
	b, err := scrypt.Key(digits, h.salt[:], 1<<h.cost, blocks, 1, sumLen)
	if err != nil {
		panic(err) // the cost is within bounds
	}
	copy(sum[:], b)
	return sum
}

// Is reports whether a hash is of a password. The time that it takes does not depend on how much of it is right.
func (h *Hash) Is(secret []byte) bool { return h.is(digest(secret)) }

func (h *Hash) is(digits []byte) bool {
	sum := h.of(digits)
	if mutant.On && mutant.Is("password: compared") {
		return true
	}
	return subtle.ConstantTimeCompare(sum[:], h.sum[:]) == 1
}

// form is how a hash is written: the cost, then salt and sum.
const form = "$scrypt$ln=%d,r=8,p=1$%s$%s"

var text = base64.RawStdEncoding.Strict()

// String returns a hash as text without spaces.
func (h Hash) String() string {
	return fmt.Sprintf(form, h.cost, text.EncodeToString(h.salt[:]), text.EncodeToString(h.sum[:]))
}

var errForm = errors.New("password: this is no hash: it begins with $scrypt$, as ACL LIST writes it")

// Parse returns the hash that a text is.
func Parse(s string) (h Hash, err error) {
	parts := strings.Split(s, "$")
	if len(parts) != 5 || parts[0] != "" || parts[1] != "scrypt" {
		return h, errForm
	}
	if _, err := fmt.Sscanf(parts[2], "ln=%d,r=8,p=1", &h.cost); err != nil {
		return h, errForm
	}
	if h.cost < least || h.cost > most {
		return h, fmt.Errorf("password: the hash has cost %d; take %d to %d", h.cost, least, most)
	}
	salt, err1 := text.DecodeString(parts[3])
	sum, err2 := text.DecodeString(parts[4])
	if err1 != nil || err2 != nil || len(salt) != saltLen || len(sum) != sumLen {
		return h, errForm
	}
	copy(h.salt[:], salt)
	copy(h.sum[:], sum)
	if h.String() != s {
		return h, errForm
	}
	return h, nil
}
