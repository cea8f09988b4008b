package project

// mine leaves it to Git, which knows how owners are compared there.
func mine(string) bool { return false }
