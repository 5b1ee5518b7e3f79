//go:build race

package facetest

// RaceDetector reports whether the race detector is on.
const RaceDetector = true
