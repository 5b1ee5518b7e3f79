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

// Hosts returns names of hosts as Refuse takes them.
func Hosts(names []string) (all []string) {
	for _, n := range names {
		all = append(all, strings.ToLower(n))
	}
	return all
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
	name = strings.ToLower(strings.Trim(name, "[]"))
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
