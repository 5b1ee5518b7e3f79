//go:build !linux

package pando_test

import "testing"

const limitedAddresses = "PANDO_TEST_LIMITED_ADDRESSES"

func addressesMapped() int64 { return 0 }

func inLimitedAddresses(t *testing.T, _ int64, _ string, _ ...string) {
	t.Skip("addresses are limited on Linux")
}
