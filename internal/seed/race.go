//go:build race

package seed

// RaceDetector reports whether the race detector is on, under which code takes
// ten times as long and more: tests then try fewer cases.
const RaceDetector = true
