//go:build !race && (amd64 || arm64 || loong64 || ppc64 || ppc64le || riscv64 || s390x || mips64 || mips64le)

package arena

// reserveShare is the MiB of addresses that a Pool reserves at most. They cost
// nothing.
const reserveShare = 512 << 10
