package ptx

import "strings"

type tokenKind uint8

const (
	tokEnd    tokenKind = iota
	tokWord             // opcode, directive, name: letters, digits and _ $ % . ::
	tokNumber           // 12, 0x1F, 0f3F800000, 1.5
	tokString           // "..."
	tokPunct            // any other character
)

type token struct {
	kind tokenKind
	text string
	line int
}

// lex cuts a PTX text into tokens, the last of which is tokEnd. An opcode with
// all its modifiers is one word.
func lex(src string) []token {
	l := lexer{src: src, line: 1}
	toks := make([]token, 0, len(src)/4)
	for {
		l.skipBlank()
		t := l.next()
		toks = append(toks, t)
		if t.kind == tokEnd {
			return toks
		}
	}
}

type lexer struct {
	src  string
	pos  int
	line int
}

// skipBlank skips white space and comments.
func (l *lexer) skipBlank() {
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		switch {
		case rest[0] == '\n':
			l.line++
			l.pos++
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r':
			l.pos++
		case strings.HasPrefix(rest, "//"):
			l.pos += lengthTo(rest, "\n")
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest, "*/")
			if n < 0 {
				reject(l.line, "a comment without end")
			}
			l.line += strings.Count(rest[:n], "\n")
			l.pos += n + 2
		default:
			return
		}
	}
}

func lengthTo(s, end string) int {
	if i := strings.Index(s, end); i >= 0 {
		return i
	}
	return len(s)
}

func (l *lexer) next() token {
	if l.pos >= len(l.src) {
		return token{tokEnd, "end of text", l.line}
	}
	start := l.pos
	c := l.src[l.pos]
	kind := tokPunct
	switch {
	case isDigit(c):
		kind = tokNumber
		l.number()
	case isWord(c):
		kind = tokWord
		l.word()
	case c == '"':
		kind = tokString
		l.pos += 1 + lengthTo(l.src[l.pos+1:], `"`) + 1
		l.pos = min(l.pos, len(l.src))
	case c > ' ' && c < 0x7f:
		l.pos++
	default:
		reject(l.line, "character %q is not PTX", c)
	}
	return token{kind, l.src[start:l.pos], l.line}
}

// word consumes name characters, and :: between two of them, as in
// L1::no_allocate.
func (l *lexer) word() {
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		switch {
		case isWord(rest[0]) || isDigit(rest[0]):
			l.pos++
		case len(rest) > 2 && rest[:2] == "::" && (isWord(rest[2]) || isDigit(rest[2])):
			l.pos += 2
		default:
			return
		}
	}
}

// number consumes an integer or float literal, decimal exponents included.
func (l *lexer) number() {
	start := l.pos
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		exponent := (c == '+' || c == '-') && strings.Contains(l.src[start:l.pos], ".") &&
			strings.ContainsRune("eE", rune(l.src[l.pos-1]))
		if !isDigit(c) && c != '.' && !isLetter(c) && !exponent {
			return
		}
		l.pos++
	}
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func isWord(c byte) bool {
	return isLetter(c) || c == '_' || c == '$' || c == '%' || c == '.'
}
