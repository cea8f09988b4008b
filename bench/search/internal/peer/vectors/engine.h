// What the driver asks of an engine. Vectors are float32 rows of one length,
// unit vectors; a result is a row number. Every method throws std::exception on
// failure; Unsupported where the engine has no such thing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Unsupported : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Params {
    size_t dim, m, efc;
};

class Engine {
   public:
    virtual ~Engine() = default;

    // add builds the index of n rows on that many threads.
    virtual void add(const float* rows, size_t n, int threads) = 0;
    // search writes the k nearest rows of each query to out, k to a query, best
    // first; -1 where fewer are found.
    virtual void search(const float* queries, size_t n, size_t k, size_t ef, int threads, int32_t* out) = 0;
    // filter lets searches return only the rows whose byte is not 0; empty: all.
    virtual void filter(const std::vector<uint8_t>& allowed) = 0;
    // replace gives rows that are already there another vector.
    virtual void replace(const float* vectors, const std::vector<uint32_t>& rows, int threads) = 0;
    virtual void save(const std::string& path) = 0;
    virtual void load(const std::string& path) = 0;
};

std::unique_ptr<Engine> new_hnswlib(const Params& p);
std::unique_ptr<Engine> new_faiss(const Params& p, bool sq8, bool native);
std::unique_ptr<Engine> new_ivfpq(const Params& p);
