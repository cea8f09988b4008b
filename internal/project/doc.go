// Package project tells which project a folder belongs to, and which namespace was chosen for
// that project.
//
// A project is known by where its Git remote is: host, owner and repository, however the
// remote is written. So clones, worktrees, subfolders and folders of a monorepo are one
// project. A repository without a remote is known by where it lies on this machine, and its
// worktrees with it; a file in it says so once a namespace was chosen, and what was chosen counts on
// when it is moved or gets a remote. What lies there without that file is another project. A folder outside Git is no project: nothing says where it begins, so a
// subfolder of it would be another one.
//
// Invariants: reading a folder changes nothing in it; user names, passwords and ports of a
// remote are in no identity and in no error; where two answers fit, the error names both.
//
// Not its job: finding the node, or making the namespace.
package project
