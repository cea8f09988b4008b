// Package text turns text into what can be indexed, stored by piece and shown:
// terms, chunks, snippets and lines.
//
// Invariants:
//   - Everything here is a pure function of its arguments and of AnalyzerVersion:
//     no clock, randomness, locale or configuration. Equal input gives equal
//     output on every processor, so the terms may enter replicated state.
//   - Offsets are byte offsets in the caller's text and lie on UTF-8 boundaries
//     wherever that text is valid.
//   - No function panics, and none needs more than a small multiple of its
//     input, whatever the bytes are.
//
// The analyzer: words by Unicode Annex 29, NFKC, full case folding, accents of
// Latin and Greek letters folded, English stop words dropped, English stems
// (Porter2). Scripts written without spaces, and Korean, whose particles are
// glued to the word, become overlapping bigrams. Identifiers, paths, addresses
// and dates are given whole and by their parts. Embedders hash these words, so that
// a change to them is another vector space.
//
// Index adds what only the text index holds: the tails of a path, the beginnings of
// a version, the host of an address, other spellings of a word, and the stems of other
// languages than English: of Russian by its letters, of those in Latin letters by the
// function words that a text has.
//
// Not its job: scoring, statistics, storage, entities, embeddings.
package text

// AnalyzerVersion numbers the rules of Analyze and AnalyzeWords. Any change to the
// terms of any text needs a new number, and that includes an update of a segmentation,
// normalisation or stemming library that changes a term: the golden test notices. The
// rules of Index belong to the pipeline version.
const AnalyzerVersion = 1
