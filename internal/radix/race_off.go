//go:build !race

package radix

func released(*Tree, string) {}
func acquired(*Tree, string) {}
func releasedAll(*Tree)      {}
func acquiredAll(*Tree)      {}
