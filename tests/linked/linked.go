// Package linked looks at what programs that import Pando are linked from: without
// package cuda they are static, and have nothing of what runs on a GPU.
package linked
