package order

// AfterPrefix returns the least string that is above all strings with prefix
// p. There is none, and it returns false, if all bytes of p are 255.
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
