package password

import (
	"strings"
	"testing"
)

// A hash knows its password and no other, also after it was written and read.
func TestHash(t *testing.T) {
	h := Make([]byte("secret"), least)
	again, err := Parse(h.String())
	if err != nil || again != h {
		t.Fatalf("%v: %v", again, err)
	}
	for secret, want := range map[string]bool{"secret": true, "": false, "Secret": false, "secret ": false, "secre": false, "secret\x00": false} {
		if got := again.Is([]byte(secret)); got != want {
			t.Errorf("%q: %v", secret, got)
		}
	}
	if other := Make([]byte("secret"), least); other == h || strings.Contains(h.String(), " ") {
		t.Errorf("%v %v", h, other)
	}
}

// The usual cost is one that is read again.
func TestUsual(t *testing.T) {
	h := New([]byte("a"))
	if _, err := Parse(h.String()); err != nil || !h.Is([]byte("a")) || h.Is([]byte("b")) {
		t.Error(h, err)
	}
}

// Texts that are no hashes are refused, those first that would take much memory.
func TestParse(t *testing.T) {
	good := Make([]byte("secret"), least).String()
	if _, err := Parse(good); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		"", "secret", "$scrypt$", good + "a", good + "$", " " + good, good[1:],
		strings.Replace(good, "ln=4", "ln=30", 1), strings.Replace(good, "ln=4", "ln=3", 1), strings.Replace(good, "ln=4", "ln=04", 1),
		strings.Replace(good, "r=8", "r=9", 1), strings.Replace(good, "scrypt", "bcrypt", 1), good[:len(good)-1],
	} {
		if h, err := Parse(s); err == nil {
			t.Errorf("%q: %v", s, h)
		}
	}
}

// The SHA-256 of a password, as redis keeps it, serves as well.
func TestFromSHA256(t *testing.T) {
	const ofSecret = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
	h, ok := FromSHA256(ofSecret)
	if !ok || !h.Is([]byte("secret")) || h.Is([]byte(ofSecret)) {
		t.Error(h, ok)
	}
	for _, s := range []string{"", ofSecret[1:], strings.ToUpper(ofSecret), "x" + ofSecret[1:]} {
		if _, ok := FromSHA256(s); ok {
			t.Errorf("%q", s)
		}
	}
}
