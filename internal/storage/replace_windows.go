package storage

// syncOptional says that directories cannot be synced here: Windows refuses it,
// and makes renames durable by itself.
const syncOptional = true
