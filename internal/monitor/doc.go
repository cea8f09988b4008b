// Package monitor has the Go runtime's monitor wait its turn.
//
// The runtime has a thread of its own that looks every 20 microseconds whether a system call holds up
// a processor, and less and less often while nothing happens; whenever a program begins to
// work after it had nothing to do, it begins anew. Where the kernel wakes it on the processor that does
// the work, it interrupts that work each time. On a machine of two virtual processors, where one that is idle does
// not count as available, that took 5 % of a search. As a batch thread (sched(7)) it runs where a
// processor has nothing else to do, as it has while a system call blocks, and after a time slice at the
// latest.
//
// Not its job: how many processors a program uses, and when it collects garbage.
package monitor
