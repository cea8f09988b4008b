package client

// checkNamed accepts every socket, as checkOwner does.
func checkNamed(string) error { return nil }

// checkOwner accepts every socket: the access list of the data directory keeps others
// out of it.
func checkOwner(string, int) error { return nil }
