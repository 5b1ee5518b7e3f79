package kernel

// LoadLanes loads the kernels with so many lanes a query.
var LoadLanes = load
