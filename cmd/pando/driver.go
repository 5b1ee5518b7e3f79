//go:build !nogpu && linux && (amd64 || arm64)

package main

const noDriverAdvice = "for an NVIDIA GPU install its driver (the part with libcuda.so.1, CUDA 11.0 or later); no toolkit is needed"
