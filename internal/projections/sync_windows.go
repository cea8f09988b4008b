package projections

// isUnsupportedSync reports errors of syncing a directory: Windows refuses it,
// and makes renames durable by itself.
func isUnsupportedSync(err error) bool { return err != nil }
