package gen

import (
	"fmt"
	"strconv"

	"github.com/pando-index/pando/internal/table"
)

// kind is a kind of keys: a type, and for strings what they look like.
type kind struct {
	typ     table.Type
	space   uint64 // size of the space of numbers that keys are made from; 0 means all 64-bit ones
	ordered bool   // greater numbers make greater keys
	text    func(n uint64) string
}

// phones is the number of telephone numbers in TPC-H: 25 countries, and groups
// of three, three and four digits that do not start with 0.
const phones = 25 * 900 * 900 * 9000

// Signed integers are not negative, and floats have a step of 1/1024, so that
// each number makes a distinct key.
var kinds = map[string]kind{
	"int64":   {table.Int64, 1 << 63, true, nil},
	"uint64":  {table.Uint64, 0, true, nil},
	"int32":   {table.Int32, 1 << 31, true, nil},
	"uint32":  {table.Uint32, 1 << 32, true, nil},
	"float64": {table.Float64, 1 << 53, true, nil},
	"float32": {table.Float32, 1 << 24, true, nil},
	"url":     {table.String, 0, false, url},
	"uuid":    {table.String, 0, true, uuid},
	"phone":   {table.String, phones, true, phone},
}

// KeyKinds returns the kinds of keys.
func KeyKinds() []string {
	return []string{"int64", "uint64", "int32", "uint32", "float64", "float32", "url", "uuid", "phone"}
}

// uuid returns a UUID of version 4 in form. The number comes first, so that
// UUIDs sort as their numbers do, except for the six bits that hold the
// version.
func uuid(n uint64) string {
	low := hash(7, n)
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%04x%08x", n>>32, n>>16&0xffff, n>>4&0xfff, n&0xf<<8|low>>56, low>>32&0xffff, low&0xffffffff)
}

// phone returns a telephone number as in TPC-H: 13-702-694-4520.
func phone(n uint64) string {
	last := n % 9000
	n /= 9000
	third := n % 900
	n /= 900
	b := make([]byte, 0, 15)
	b = strconv.AppendUint(b, 10+n/900, 10)
	b = append(b, '-')
	b = strconv.AppendUint(b, 100+n%900, 10)
	b = append(b, '-')
	b = strconv.AppendUint(b, 100+third, 10)
	b = append(b, '-')
	return string(strconv.AppendUint(b, 1000+last, 10))
}

// url returns the address of a page: one of a few thousand sites, a section,
// and a number that makes it unique.
func url(n uint64) string {
	h := hash(3, n)
	site := h % 4096 * (h >> 52) / 4096 // sites with low numbers have more pages
	b := append(make([]byte, 0, 64), "https://www."...)
	b = append(b, syllables(hash(4, site))...)
	b = append(b, ".example/"...)
	b = append(b, sections[h>>20%uint64(len(sections))]...)
	b = append(b, '/')
	return string(strconv.AppendUint(b, n, 36))
}

var sections = []string{"articles", "blog", "docs", "news/2024", "news/2025", "products", "users"}

// syllables returns a name of three syllables.
func syllables(h uint64) string {
	const consonants, vowels = "bdfgklmnprstvz", "aeiou"
	b := make([]byte, 0, 6)
	for range 3 {
		b = append(b, consonants[h%uint64(len(consonants))], vowels[h>>8%uint64(len(vowels))])
		h >>= 16
	}
	return string(b)
}
