//go:build unix && !aix && !solaris && !illumos && !linux

package arena

const (
	noReserve = 0
	noReplace = 0
)

// adviseHuge does nothing: these systems choose page sizes by themselves.
func adviseHuge(*mapping, uintptr) {}

func reserve1G(uintptr) *mapping { return nil }
