//go:build !linux

package pando_test

import "testing"

const limitedAddresses = "PANDO_TEST_LIMITED_ADDRESSES"

func inLimitedAddresses(t *testing.T, _ int64, _ string) { t.Skip("addresses are limited on Linux") }
