package ours

const NameBlocked = "Pando blocked"

// The names of the rows of a layout.
const (
	NameImplicit   = "Pando implicit"
	NameCompressed = "Pando compressed"
)

const (
	NameGPU      = "Pando GPU"
	NameGPUPairs = "Pando GPU pairs"
	NameGPUApart = "Pando GPU apart"
	NameCPU      = "Pando CPU"
)

const NameGPUTree = "Pando GPU tree"

// NameHybrid is the schedule of the HB+-tree paper: inner levels on the
// GPU, leaves on the CPU.
const NameHybrid = "Pando Hybrid"

const NamePairs = "Pando pairs"

const NameApart = "Pando apart"
