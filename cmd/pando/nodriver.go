//go:build nogpu || !linux || !(amd64 || arm64)

package main

const noDriverAdvice = "GPUs need Linux on amd64 or arm64, and a build without the tag nogpu"
