package ptx

import (
	"strconv"
	"strings"
)

// parse turns PTX source into a text. It rejects what is not PTX, or is PTX of
// a kind that no kernel here needs (textures, 32-bit addresses, aliases).
func parse(src string) *text {
	p := parser{toks: lex(src), out: &text{source: strings.Split(src, "\n")}}
	for p.peek().kind != tokEnd {
		p.topLevel()
	}
	if p.out.version == 0 || p.out.target == 0 {
		reject(1, "no .version and .target")
	}
	return p.out
}

type parser struct {
	toks []token
	pos  int
	out  *text
}

func (p *parser) peek() token { return p.toks[p.pos] }

func (p *parser) next() token {
	t := p.toks[p.pos]
	if t.kind != tokEnd {
		p.pos++
	}
	return t
}

// accept consumes the token if it has that text.
func (p *parser) accept(s string) bool {
	t := p.peek()
	if t.text != s || t.kind == tokString || t.kind == tokEnd {
		return false
	}
	p.pos++
	return true
}

func (p *parser) expect(s string) {
	if !p.accept(s) {
		reject(p.peek().line, "%q where %q should be", p.peek().text, s)
	}
}

func (p *parser) word() string {
	t := p.next()
	if t.kind != tokWord {
		reject(t.line, "%q where a name should be", t.text)
	}
	return t.text
}

// number reads an integer literal, with sign.
func (p *parser) number() int {
	o := p.literal()
	if o.kind != argInt {
		reject(p.peek().line, "a whole number should be here")
	}
	return int(o.value)
}

func (p *parser) skipLine() {
	for line := p.peek().line; p.peek().kind != tokEnd && p.peek().line == line; {
		p.pos++
	}
}

func (p *parser) skipTo(end string) {
	for !p.accept(end) {
		if p.next().kind == tokEnd {
			reject(p.peek().line, "no %q before the end", end)
		}
	}
}

func (p *parser) topLevel() {
	t := p.peek()
	switch t.text {
	case ".version":
		p.next()
		p.version()
	case ".target":
		p.next()
		p.targets()
	case ".address_size":
		p.next()
		if n := p.number(); n != 64 {
			reject(t.line, ".address_size %d: only 64 is known", n)
		}
	case ".file", ".loc":
		p.skipLine()
	case ".section":
		p.skipTo("}")
	case ".pragma":
		p.skipTo(";")
	default:
		p.declaration()
	}
}

func (p *parser) version() {
	t := p.next()
	major, minor, _ := strings.Cut(t.text, ".")
	a, err1 := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	if err1 != nil || err2 != nil || a < 1 || b > 9 {
		reject(t.line, "version %q", t.text)
	}
	p.out.version = 10*a + b
}

// targets reads "sm_90, debug".
func (p *parser) targets() {
	line := p.peek().line
	for {
		w := p.word()
		if n, ok := strings.CutPrefix(w, "sm_"); ok {
			n = strings.TrimSuffix(n, "a") // sm_90a: a superset of sm_90
			v, err := strconv.Atoi(n)
			if err != nil {
				reject(line, "target %q", w)
			}
			p.out.target = v
		} else if w != "debug" {
			reject(line, "target %q is not known", w)
		}
		if !p.accept(",") {
			return
		}
	}
}

// declaration reads a module-level variable or function, with its linking
// directives, of which only .extern matters here.
func (p *parser) declaration() {
	extern := false
	for {
		t := p.peek()
		switch t.text {
		case ".visible", ".weak", ".common":
			p.next()
		case ".extern":
			extern = true
			p.next()
		case ".entry", ".func":
			p.next()
			p.function(t.text == ".entry", t.line)
			return
		case ".global", ".const", ".shared":
			v := p.variable()
			v.extern = extern
			p.expect(";")
			p.out.vars = append(p.out.vars, v)
			return
		default:
			reject(t.line, "%q is not known here", t.text)
		}
	}
}

// variable reads ".space .align n .type name[n] = init", up to what follows.
func (p *parser) variable() *variable {
	t := p.next()
	v := &variable{space: spaceNames[t.text], line: t.line, count: 1}
	lanes, pointee := 1, false
	for strings.HasPrefix(p.peek().text, ".") {
		t := p.next()
		switch t.text {
		case ".align":
			if n := p.number(); !pointee {
				v.align = n
			}
		case ".v2":
			lanes = 2
		case ".v4":
			lanes = 4
		case ".ptr", ".global", ".const", ".local", ".shared":
			if v.space != param { // for a parameter, they describe what it points to
				reject(t.line, "%q is not known here", t.text)
			}
			pointee = true
		default:
			v.elem = typeBytes(t)
		}
	}
	if v.elem == 0 {
		reject(v.line, "a variable with no type")
	}
	v.elem *= lanes
	v.align = max(v.align, v.elem)
	if v.align&(v.align-1) != 0 || v.align > 1024 {
		reject(v.line, "alignment %d", v.align)
	}
	v.name = p.word()
	p.dimensions(v)
	if p.accept("=") {
		p.initialiser(v)
	}
	return v
}

func (p *parser) dimensions(v *variable) {
	for p.accept("[") {
		if p.accept("]") {
			v.count = 0
			return
		}
		n := p.number()
		if n <= 0 || n > 1<<30 || v.count > (1<<30)/n {
			reject(v.line, "array of %d elements", n)
		}
		v.count *= n
		p.expect("]")
	}
}

// typeBytes returns the size of .b8 to .f64.
func typeBytes(t token) int {
	ty, ok := types[strings.TrimPrefix(t.text, ".")]
	if !ok || ty.bits < 8 {
		reject(t.line, "type %q is not known", t.text)
	}
	return ty.bits / 8
}

func (p *parser) initialiser(v *variable) {
	if !p.accept("{") {
		v.init = append(v.init, p.initial(v))
		return
	}
	for !p.accept("}") {
		v.init = append(v.init, p.initial(v))
		p.accept(",")
	}
	if len(v.init) > v.count {
		reject(v.line, "%s: %d values for %d elements", v.name, len(v.init), v.count)
	}
}

// initial reads a number, sym, sym+8, or generic(sym)+8. Floats must be
// written as bits in the variable's type: 0f or 0d.
func (p *parser) initial(v *variable) initial {
	if p.peek().kind != tokWord {
		return initial{value: p.literal().value}
	}
	var in initial
	in.symbol = p.word()
	if in.symbol == "generic" && p.accept("(") {
		in.generic = true
		in.symbol = p.word()
		p.expect(")")
	}
	if p.accept("+") {
		in.value = p.literal().value
	}
	if v.elem != 8 {
		reject(v.line, "%s: an address in elements of %d bytes", v.name, v.elem)
	}
	return in
}

// function reads what follows .entry or .func.
func (p *parser) function(entry bool, line int) {
	f := &function{entry: entry, line: line}
	if !entry && p.accept("(") {
		f.results = p.params()
	}
	f.name = p.word()
	if p.accept("(") {
		f.params = p.params()
	}
	p.tuning(f)
	if !p.accept(";") {
		p.expect("{")
		f.body = p.block()
		f.defined = true
	}
	p.out.funcs = append(p.out.funcs, f)
}

func (p *parser) params() []*variable {
	var out []*variable
	for !p.accept(")") {
		if t := p.peek(); t.text != ".param" {
			reject(t.line, "%q: parameters must be .param", t.text)
		}
		out = append(out, p.variable())
		p.accept(",")
	}
	return out
}

// tuning reads the directives between a function's head and its body.
func (p *parser) tuning(f *function) {
	for {
		switch t := p.peek(); t.text {
		case ".maxntid":
			p.next()
			f.maxThreads = p.product()
		case ".reqntid":
			p.next()
			f.reqThreads = p.product()
		case ".minnctapersm", ".maxnctapersm", ".maxnreg":
			p.next()
			p.number()
		case ".noreturn":
			p.next()
		case ".pragma":
			p.skipTo(";")
		default:
			return
		}
	}
}

// product reads "128, 1, 1".
func (p *parser) product() int {
	n := p.number()
	for p.accept(",") {
		n *= p.number()
	}
	return n
}
