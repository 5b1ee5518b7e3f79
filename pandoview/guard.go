package pandoview

import (
	"net/http"

	"github.com/pando-index/pando/internal/origin"
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
	if why := origin.Refuse(r, h.hosts, r.URL.Path == "/"); why != "" {
		return problemf(http.StatusForbidden, "this page is for this machine alone, and for hosts that pandoview.Hosts allows: %s", why)
	}
	return nil
}
