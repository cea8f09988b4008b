// Package vectors measures vector indexes beside each other.
//
// Its job: one process for each index, ours and the C++ ones, all speaking the
// same lines (peers/main.cpp says which); the same files of vectors for all;
// rounds that alternate between the indexes, so that each saw the same machine;
// tables of build rate, memory, recall against queries a second, filters,
// replacement and loading.
//
// Invariants: truth is a scan by a program that belongs to none of the indexes;
// what an index cannot do is said, not left out.
//
// Not its job: compiling the C++ program, printing.
package vectors
