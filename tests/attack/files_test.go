package attack

func (p pair[K, V]) files(c *testCase) error { return nil }
