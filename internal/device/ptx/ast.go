package ptx

// text is a parsed PTX module, before names are resolved.
type text struct {
	version int // 10*major+minor
	target  int // 90 for sm_90
	vars    []*variable
	funcs   []*function
	source  []string // lines, for messages
}

// space is a kind of memory. Only a generic address can refer to any of
// several.
type space uint8

const (
	generic space = iota
	global
	shared
	local
	constant
	param
)

var spaceNames = map[string]space{
	".global": global, ".shared": shared, ".local": local, ".const": constant, ".param": param,
}

func (s space) String() string {
	return [...]string{"generic", "global", "shared", "local", "const", "param"}[s]
}

// variable is a declared piece of memory.
type variable struct {
	name   string
	space  space
	elem   int // bytes per element
	count  int // elements; 0 for the unsized array of dynamic shared memory
	align  int
	extern bool
	init   []initial
	line   int
}

func (v *variable) bytes() int { return v.elem * v.count }

// initial is one element of an initializer: a number, or a symbol's address.
type initial struct {
	symbol  string
	generic bool // generic(symbol): the address in the generic window
	value   uint64
}

// function is an entry point or a device function.
type function struct {
	name       string
	entry      bool
	params     []*variable
	results    []*variable
	maxThreads int // from .maxntid, 0 for none
	reqThreads int // from .reqntid, 0 for none
	body       []*stmt
	defined    bool // false for a prototype
	line       int
}

type stmtKind uint8

const (
	stmtInst stmtKind = iota
	stmtLabel
	stmtRegs
	stmtVar
	stmtBlock
	stmtTargets // label: .branchtargets a, b, c;
)

// stmt is one statement of a function's body.
type stmt struct {
	kind  stmtKind
	line  int
	name  string // opcode with its modifiers, or label, or register
	guard string // predicate register, or ""
	not   bool   // the guard is @!p
	args  []operand
	bits  int // stmtRegs: width, and count for name<count>, else 0
	count int
	v     *variable
	body  []*stmt
}

type operandKind uint8

const (
	argName    operandKind = iota // register, symbol, label; with value as offset
	argInt                        // integer literal
	argFloat32                    // 0f literal, bits
	argFloat64                    // 0d or decimal literal, bits
	argAddr                       // [name+value] or [value]
	argVector                     // {a, b}
	argList                       // (a, b) of a call
)

// operand is one operand as written.
type operand struct {
	kind   operandKind
	name   string
	second string // q of p|q
	not    bool   // !p
	value  uint64
	elems  []operand
}
