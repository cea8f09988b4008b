// Package local runs a BERT-family model from a directory on this machine's
// processor: the files of a sentence-transformers model, as they are published.
//
// # Invariants
//
//   - Files are read, never fetched. A model that is not wholly understood
//     (another architecture, tokenizer, pooling or a further layer) is refused;
//     there is no vector that is only nearly the model's.
//   - Digest covers every byte that a vector depends on, and is taken of the
//     bytes that were used, not of a second reading.
//   - A text's vector does not depend on the texts beside it: every output
//     number is summed in one order, whatever the batch.
//   - Tensors, tokens and work are bounded by the files' sizes and MaxTokens.
//
// Vectors are not the same bits on every processor (fused and unfused sums
// differ), so they may not be derived in a replay.
//
// # Not its job
//
// It does not know spaces, prefixes by model name, retries or configuration.
package local
