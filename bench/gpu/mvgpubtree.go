package gpu

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed mvgpubtree.cu
var mvGpuBTreeSource []byte

// BuildMVGpuBTree compiles a program that drives MVGpuBTree, whose sources are in
// a folder of the caller's, into dir, and returns its path. It is spoken to as
// Thrust is, with the modes insert and find.
func BuildMVGpuBTree(dir, sources string) (program string, err error) {
	nvcc, err := exec.LookPath("nvcc")
	if err != nil {
		return "", err
	}
	source := filepath.Join(dir, "mvgpubtree.cu")
	if err := os.WriteFile(source, mvGpuBTreeSource, 0o666); err != nil {
		return "", err
	}
	program = filepath.Join(dir, "mvgpubtree")
	said, err := exec.Command(nvcc, "-O3", "-std=c++17", "-DNDEBUG", "-arch=native", "-maxrregcount=70", "--expt-extended-lambda",
		"--expt-relaxed-constexpr", "-I", filepath.Join(sources, "include"), "-o", program, source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("nvcc: %w: %s", err, firstLines(said, 3))
	}
	return program, nil
}
