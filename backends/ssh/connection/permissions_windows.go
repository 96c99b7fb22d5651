package connection

// othersMay has nothing to say here, where files have no mode.
func othersMay(string) error { return nil }
