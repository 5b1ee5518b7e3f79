package main

import (
	"fmt"
	"strings"

	"github.com/pando-index/pando"
)

// layoutFlag is the value of --layout.
type layoutFlag pando.LayoutKind

// layoutList returns the names of all layouts.
func layoutList(between string) string {
	var names []string
	for _, k := range pando.Layouts() {
		names = append(names, k.String())
	}
	return strings.Join(names, between)
}

func (f *layoutFlag) String() string { return pando.LayoutKind(*f).String() }

func (f *layoutFlag) Type() string { return "string" }

// Set sets the flag to the layout with a name.
func (f *layoutFlag) Set(s string) error {
	for _, k := range pando.Layouts() {
		if k.String() == strings.ToLower(s) {
			*f = layoutFlag(k)
			return nil
		}
	}
	return fmt.Errorf("no layout %q; take one of %s", s, layoutList(", "))
}
