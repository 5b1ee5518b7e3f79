//go:build race

package pando_test

const raceDetector = true
