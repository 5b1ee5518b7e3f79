//go:build !linux

package attack

// addresses is for Linux alone, where a process can bound its own addresses.
func addresses(c *testCase) error {
	c.tried = 0
	return nil
}
