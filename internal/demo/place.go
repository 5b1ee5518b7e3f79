package demo

import (
	"fmt"

	"github.com/pando-index/pando"
)

// A Place is where an index runs, for programs and people.
type Place struct {
	Device       string `json:"device"`
	Reason       string `json:"reason"`
	Instructions string `json:"instructions"`
	Cores        int    `json:"cores"`
}

// PlaceOf returns where an index with these statistics runs.
func PlaceOf(s pando.Stats) Place {
	return Place{s.Device.String(), s.Reason, s.Path, s.Workers}
}

func (p Place) String() string {
	return fmt.Sprintf("%s, %s instructions, %d cores (%s)", p.Device, p.Instructions, p.Cores, p.Reason)
}
