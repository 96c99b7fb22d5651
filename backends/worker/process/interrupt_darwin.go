package process

// dropTyped does nothing: the far side of a terminal cannot be opened by its near one.
func dropTyped(int) {}
