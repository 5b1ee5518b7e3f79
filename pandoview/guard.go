package pandoview

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// mostURL bounds the address of a request; the longest key that can be asked for
// is a little shorter.
const mostURL = 8 << 10

// guard returns a problem for a request that is not the page's own: pages of other
// origins must not read an index, not even through a name that leads here.
func (h *handler) guard(r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return problemf(http.StatusMethodNotAllowed, "this page is only read: GET, not %s", r.Method)
	}
	if len(r.URL.Path)+len(r.URL.RawQuery) > mostURL {
		return problemf(http.StatusRequestURITooLong, "the address has %d bytes; %d are the most", len(r.URL.Path)+len(r.URL.RawQuery), mostURL)
	}
	if !h.allowed(r.Host) {
		return problemf(http.StatusForbidden, "this page is for this machine alone, and %q is not one of its names; pandoview.Hosts allows others", clip(r.Host))
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !strings.EqualFold(u.Host, r.Host) {
			return problemf(http.StatusForbidden, "requests of %q are not answered", clip(origin))
		}
	}
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "", "same-origin", "none":
		return nil
	default:
		if site == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.URL.Path == "/" {
			return nil // a link to the page
		}
		return problemf(http.StatusForbidden, "requests of other sites are not answered")
	}
}

// allowed reports whether a host is one of this machine's own, or an allowed one.
func (h *handler) allowed(host string) bool {
	name := host
	if only, _, err := net.SplitHostPort(host); err == nil {
		name = only
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if name == "localhost" || slices.Contains(h.hosts, name) {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// clip shortens text from a request.
func clip(s string) string {
	const most = 100
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
