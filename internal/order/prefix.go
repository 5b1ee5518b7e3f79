package order

// AfterPrefix gives the least string above all that begin with p; there is none
// if p is nothing but bytes of 255.
func AfterPrefix(p string) (string, bool) {
	last := len(p) - 1
	for last >= 0 && p[last] == 0xff {
		last--
	}
	if last < 0 {
		return "", false
	}
	return p[:last] + string([]byte{p[last] + 1}), true
}
