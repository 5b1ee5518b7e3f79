package resp

// split appends the words of a line to args, by redis' rules: between double quotes, \n,
// \r, \t, \b, \a, \xHH and a backslash before any other byte; between single ones, \' alone; and
// a space, or the end, behind a quote. It returns false if quotes are not balanced. Words without quotes
// are parts of the line. It stops behind the first word that makes more than most.
func split(args [][]byte, line []byte, most int) (words [][]byte, ok bool) {
	for {
		for len(line) > 0 && isSpace(line[0]) {
			line = line[1:]
		}
		if len(line) == 0 || line[0] == 0 { // where C ends a line
			return args, true
		}
		n := 0
		for n < len(line) && !isSpace(line[n]) && line[n] != '"' && line[n] != '\'' && line[n] != 0 {
			n++
		}
		word := line[:n:n]
		if n < len(line) && line[n] != 0 && !isSpace(line[n]) {
			if word, n, ok = quoted(line); !ok {
				return args, false
			}
		}
		if args = append(args, word); len(args) > most {
			return args, true
		}
		line = line[n:]
	}
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// quoted returns the first word of a line, some of which is in quotes, and how many bytes of
// the line it takes.
func quoted(line []byte) (word []byte, n int, ok bool) {
	word = []byte{}
	quote := byte(0)
	for n < len(line) {
		c := line[n]
		switch {
		case quote == 0 && (isSpace(c) || c == 0):
			return word, n, true
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == '"' && c == '\\' && n+3 < len(line) && line[n+1] == 'x' && isHex(line[n+2]) && isHex(line[n+3]):
			word = append(word, unhex(line[n+2])<<4|unhex(line[n+3]))
			n += 3
		case quote == '"' && c == '\\' && n+1 < len(line):
			n++
			word = append(word, unescape(line[n]))
		case quote == '\'' && c == '\\' && n+1 < len(line) && line[n+1] == '\'':
			n++
			word = append(word, '\'')
		case quote != 0 && c == quote:
			quote = 0
			if n+1 < len(line) && !isSpace(line[n+1]) {
				return nil, 0, false
			}
		case quote != 0 && c == 0:
			return nil, 0, false
		default:
			word = append(word, c)
		}
		n++
	}
	return word, n, quote == 0
}

func unescape(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c >= 'a':
		return c - 'a' + 10
	}
	return c - 'A' + 10
}
