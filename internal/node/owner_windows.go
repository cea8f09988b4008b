package node

import "io/fs"

// ownerOf is not asked: see filePermissions.
func ownerOf(fs.FileInfo) (uid, gid int) { return 0, 0 }
