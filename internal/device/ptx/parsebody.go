package ptx

import (
	"math"
	"strconv"
	"strings"
)

// block reads statements up to and including the closing brace.
func (p *parser) block() []*stmt {
	var out []*stmt
	for !p.accept("}") {
		if s := p.statement(); s != nil {
			out = append(out, s...)
		}
	}
	return out
}

// statement reads one statement; it returns nil for what only a debugger
// reads.
func (p *parser) statement() []*stmt {
	t := p.peek()
	switch t.text {
	case "{":
		p.next()
		return []*stmt{{kind: stmtBlock, line: t.line, body: p.block()}}
	case ".reg":
		p.next()
		return p.registers(t.line)
	case ".local", ".shared", ".param", ".global", ".const":
		v := p.variable()
		p.expect(";")
		return []*stmt{{kind: stmtVar, line: t.line, name: v.name, v: v}}
	case ".pragma":
		p.skipTo(";")
		return nil
	case ".loc":
		p.skipLine()
		return nil
	}
	if t.kind == tokWord && p.toks[p.pos+1].text == ":" {
		p.pos += 2
		return p.label(t)
	}
	return []*stmt{p.instruction()}
}

// registers reads ".b32 %r<51>, %x;".
func (p *parser) registers(line int) []*stmt {
	ty, ok := types[strings.TrimPrefix(p.peek().text, ".")]
	if !ok {
		reject(line, "register type %q is not known", p.peek().text)
	}
	p.next()
	var out []*stmt
	for {
		s := &stmt{kind: stmtRegs, line: line, bits: ty.bits, name: p.word()}
		if p.accept("<") {
			s.count = p.number()
			if s.count <= 0 || s.count > 1<<16 {
				reject(line, "%d registers", s.count)
			}
			p.expect(">")
		}
		out = append(out, s)
		if !p.accept(",") {
			p.expect(";")
			return out
		}
	}
}

func (p *parser) label(t token) []*stmt {
	s := &stmt{kind: stmtLabel, line: t.line, name: t.text}
	if p.accept(".branchtargets") {
		s.kind = stmtTargets
		s.args = p.operands()
	}
	return []*stmt{s}
}

func (p *parser) instruction() *stmt {
	s := &stmt{line: p.peek().line}
	if p.accept("@") {
		s.not = p.accept("!")
		s.guard = p.word()
	}
	s.name = p.word()
	s.args = p.operands()
	return s
}

// operands reads a comma-separated list up to and including the semicolon.
func (p *parser) operands() []operand {
	if p.accept(";") {
		return nil
	}
	var out []operand
	for {
		out = append(out, p.operand())
		if !p.accept(",") {
			p.expect(";")
			return out
		}
	}
}

func (p *parser) operand() operand {
	switch {
	case p.accept("{"):
		return operand{kind: argVector, elems: p.until("}")}
	case p.accept("("):
		return operand{kind: argList, elems: p.until(")")}
	case p.accept("["):
		return p.address()
	case p.accept("!"):
		return operand{kind: argName, name: p.word(), not: true}
	case p.peek().kind == tokWord:
		return p.named()
	}
	return p.literal()
}

func (p *parser) until(end string) []operand {
	var out []operand
	for !p.accept(end) {
		out = append(out, p.operand())
		if !p.accept(",") && p.peek().text != end {
			reject(p.peek().line, "%q where %q should be", p.peek().text, end)
		}
	}
	return out
}

// named reads name, name+8, or p|q.
func (p *parser) named() operand {
	o := operand{kind: argName, name: p.word()}
	if p.accept("|") {
		o.second = p.word()
		return o
	}
	o.value = p.offset()
	return o
}

// offset reads "+8", "+-8", "-8" or nothing.
func (p *parser) offset() uint64 {
	switch {
	case p.accept("+"):
		return p.literal().value
	case p.peek().text == "-":
		return p.literal().value
	}
	return 0
}

func (p *parser) address() operand {
	o := operand{kind: argAddr}
	if p.peek().kind == tokWord {
		o.name = p.word()
		o.value = p.offset()
	} else {
		o.value = p.literal().value
	}
	p.expect("]")
	return o
}

// literal reads a number with its sign.
func (p *parser) literal() operand {
	negative := p.accept("-")
	t := p.next()
	if t.kind != tokNumber {
		reject(t.line, "%q where a number should be", t.text)
	}
	o, ok := parseNumber(t.text)
	if !ok {
		reject(t.line, "number %q", t.text)
	}
	if negative {
		switch o.kind {
		case argInt:
			o.value = -o.value
		case argFloat32:
			o.value ^= 1 << 31
		case argFloat64:
			o.value ^= 1 << 63
		}
	}
	return o
}

// parseNumber reads 12, 12U, 0x1F, 017, 0b1, 0f3F800000, 0d3FF0000000000000, 1.5.
func parseNumber(s string) (operand, bool) {
	if len(s) == 10 && (s[:2] == "0f" || s[:2] == "0F") {
		v, err := strconv.ParseUint(s[2:], 16, 32)
		return operand{kind: argFloat32, value: v}, err == nil
	}
	if len(s) == 18 && (s[:2] == "0d" || s[:2] == "0D") {
		v, err := strconv.ParseUint(s[2:], 16, 64)
		return operand{kind: argFloat64, value: v}, err == nil
	}
	if strings.Contains(s, ".") {
		v, err := strconv.ParseFloat(s, 64)
		return operand{kind: argFloat64, value: math.Float64bits(v)}, err == nil
	}
	v, err := strconv.ParseUint(strings.TrimSuffix(s, "U"), 0, 64)
	return operand{kind: argInt, value: v}, err == nil
}
