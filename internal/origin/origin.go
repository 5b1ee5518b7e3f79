// Package origin tells requests of this server's own pages, and of programs, from those that pages of other
// sites make a browser send: also through a name that leads here, which its owner has pointed at this machine
// meanwhile (DNS rebinding).
package origin

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/pando-index/pando/internal/mutant"
)

// Hosts returns names of hosts as Refuse takes them. Check says which are none.
func Hosts(names []string) (all []string) {
	for _, n := range names {
		all = append(all, plain(strings.TrimSpace(n)))
	}
	return all
}

// plain returns the name of a host as it is compared: an address of IPv6 without brackets, and in one of the ways in
// which it can be written.
func plain(name string) string {
	name = strings.ToLower(name)
	bare := name
	if inner, open := strings.CutPrefix(name, "["); open {
		bare = strings.TrimSuffix(inner, "]")
	}
	if ip, err := netip.ParseAddr(bare); err == nil {
		return ip.String()
	}
	return name
}

// Check returns an error if one of the names that Hosts has returned is none that a request could have.
func Check(hosts []string) error {
	other := func(c rune) bool {
		return !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || strings.ContainsRune("-._", c))
	}
	for _, h := range hosts {
		if _, err := netip.ParseAddr(h); err != nil && (h == "" || strings.ContainsFunc(h, other)) {
			return fmt.Errorf("%q is no name of a host; write it as data.example, or its address, without http://, port and path", Clip(h))
		}
	}
	return nil
}

// Refuse returns why a request is not answered, or "" if it is. Its host must be one of this machine's
// own names or one of hosts. page reports whether its address is a page that others may link to.
func Refuse(r *http.Request, hosts []string, page bool) (why string) {
	if !allowed(r.Host, hosts) && !(mutant.On && mutant.Is("origin: host")) {
		return fmt.Sprintf("%q is not a name of this server", Clip(r.Host))
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if (err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host)) && !(mutant.On && mutant.Is("origin: page")) {
			return fmt.Sprintf("requests of %q are not answered", Clip(origin))
		}
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
		return ""
	default:
		if site == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate" && page {
			return "" // a link to the page
		}
		return "requests of other sites are not answered"
	}
}

// allowed reports whether a host is one of this machine's own, or an allowed one.
func allowed(host string, hosts []string) bool {
	name := host
	if only, _, err := net.SplitHostPort(host); err == nil {
		name = only
	}
	name = plain(name)
	if name == "localhost" || slices.Contains(hosts, name) {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// Clip shortens text from a request.
func Clip(s string) string {
	const most = 100
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
