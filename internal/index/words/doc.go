// Package words finds the known words that a word may have been meant for: those
// that begin or end with it, those that one or two edits make of it, and the two
// that it is glued of.
//
// A Vocabulary is the terms of one partition: an immutable finite state transducer,
// once forwards and once backwards, and beside it a sorted list of the terms that
// are newer. A vocabulary is not changed: With gives another one.
//
// Invariants:
//   - Every look-up is a function of the terms and of the word. Which of the terms
//     are in the transducer and which are beside it does not show, and neither do
//     map order or time, so that replicas answer alike.
//   - The work of a look-up is bounded by the nodes of the terms' trie that it
//     visits. Where the bound is reached it finds nothing, never a part of what
//     there is: a part would depend on the order.
//
// Not its job: where terms come from and how often they occur, which of what was
// found is used and what it weighs, analysis of text.
//
// # Decisions and trade-offs
//
//   - The transducer is that of blevesearch/vellum. A million random identifiers take
//     13 MB, built in a second.
//   - The pattern for edits is our own. The library's Levenshtein automaton is built
//     whole for each word: 0.7 MB for one edit and 1.8 MB for two, most of it for states
//     that no term leads to, and it is wrong for words with a character across a multiple
//     of 32 bytes. A table row for each byte of the path takes 8 KB, and no building.
//   - Endings have a second transducer, of the terms from back to front. It doubles
//     the memory, and finds the last parts of an identifier without a scan over all
//     terms. Inner parts are found where the analysis of texts made terms of them.
//   - Two edits keep the first character: most misspellings do, and it takes a
//     third off the work.
//   - Keys of a keyboard and how a word sounds only order what the edits found. As
//     sources of their own they would bring words that share little.
package words
