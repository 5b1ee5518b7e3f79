package pandoview

import (
	"net/http"
	"time"

	"github.com/pando-index/pando/internal/layout"
)

// pulse is a tree at one moment. Two of them tell rates: the page compares.
type pulse struct {
	At         int64       `json:"at"` // milliseconds
	Entries    int64       `json:"entries"`
	Bytes      int64       `json:"bytes"`
	Kept       int64       `json:"kept"`
	Leaves     int         `json:"leaves"`
	Uppers     int         `json:"uppers"`
	Retired    int         `json:"retired"`
	Pending    int         `json:"pending"`
	Dirty      int         `json:"dirty"`
	Height     int         `json:"height"`
	Epoch      uint64      `json:"epoch"`
	Generation uint64      `json:"generation"`
	Sample     [][4]uint64 `json:"sample"` // leaf, its version, entries, state
}

// sampled is how many leaves a pulse looks at.
const sampled = 1024

// live answers /api/live.
func (h *handler) live(query) (any, error) {
	in := h.see()
	tree, ok := in.Layout().(layout.Living)
	if !ok {
		return nil, problemf(http.StatusNotImplemented, "this index never changes")
	}
	p := tree.Pulse(sampled)
	out := pulse{
		At: time.Now().UnixMilli(), Entries: p.Entries, Bytes: p.Bytes, Kept: p.Kept, Leaves: p.Leaves, Uppers: p.Uppers,
		Retired: p.Retired, Pending: p.Pending, Dirty: p.Dirty, Height: p.Height, Epoch: p.Epoch, Generation: p.Generation,
		Sample: [][4]uint64{},
	}
	for _, b := range p.Sample {
		out.Sample = append(out.Sample, [4]uint64{uint64(b.ID), b.Version, uint64(b.Used), uint64(b.State)})
	}
	h.see()
	return out, nil
}
