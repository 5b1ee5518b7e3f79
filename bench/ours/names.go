package ours

// The names of Pando's rows: by layout, by the place of the index, and of the
// mutable tree.
const (
	NamePairs      = "Pando pairs"
	NameApart      = "Pando apart"
	NameImplicit   = "Pando implicit"
	NameBlocked    = "Pando blocked"
	NameCompressed = "Pando compressed"

	NameCPU      = "Pando CPU"
	NameGPU      = "Pando GPU"
	NameGPUPairs = "Pando GPU pairs"
	NameGPUApart = "Pando GPU apart"
	NameHybrid   = "Pando Hybrid" // the HB+-tree paper's schedule: inner levels on the GPU, leaves on the CPU

	NameTree     = "Pando Tree"
	NameSetBatch = "Pando SetBatch"
	NameGPUTree  = "Pando GPU tree"

	Unsigned = ", inner nodes" // behind the name of a row on a GPU: searched without signs
)
