package pace

import "testing"

// An address of version 6 counts as its networks, and one of version 4 as itself, however it is written.
func TestOrigins(t *testing.T) {
	for address, want := range map[string]Origin{
		"[2001:db8:1:2:3::4]:80": {"2001:db8:1:2::/64", "2001:db8:1::/48"}, "192.0.2.1:80": {Host: "192.0.2.1"},
		"[::ffff:192.0.2.1]:80": {Host: "192.0.2.1"}, "[fe80::1%eth0]:1": {"fe80::/64", "fe80::/48"}, "@": {Host: "@"},
	} {
		if got := OriginOf(address); got != want {
			t.Errorf("%s counts as %v", address, got)
		}
	}
}
