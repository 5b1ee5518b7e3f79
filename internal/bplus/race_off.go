//go:build !race

package bplus

func released[C Code](*Tree[C], C)       {}
func acquired[C Code](*Tree[C], C)       {}
func acquiredEach[C Code](*Tree[C], []C) {}
func releasedAll[C Code](*Tree[C])       {}
func acquiredAll[C Code](*Tree[C])       {}
