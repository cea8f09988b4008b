// Package project tells which project a folder belongs to, and which namespace was chosen for
// that project.
//
// A project is known by where its Git remote is: host, owner and repository, however the
// remote is written. So clones, worktrees, subfolders and folders of a monorepo are one
// project. A folder outside Git is no project: nothing says where it begins, so a subfolder of it
// would be another one.
//
// A repository without a remote is known by where it lies on this machine, and its worktrees with
// it. Once a namespace was chosen for it, it has a mark: a file with its place, its identity and a
// random key. What was chosen counts on when it is moved or gets a remote. The user's mapping has
// place and key, too, and decides: a mark without its key, which others can write, says nothing. What
// lies at a project's place without its mark is another project, and so is a copy, which is what has
// the mark of one that lies elsewhere.
//
// Invariants: reading a folder changes nothing in it; user names, passwords and ports of a
// remote are in no identity and in no error; where two answers fit, the error names both. An
// identity stays when its repository is moved, and nothing that another repository holds takes a
// namespace away or gives one.
//
// Not its job: finding the node, or making the namespace.
package project
