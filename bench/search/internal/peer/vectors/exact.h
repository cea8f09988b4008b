// The truth that recall is measured against: every row is compared.
#pragma once

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "kernel.h"

// nearest writes the k nearest allowed rows of each query to out, best first,
// ties by smaller row, -1 where fewer exist. A few queries share each pass over
// the rows, so that memory is not the bound.
inline void nearest(const float* rows, size_t n, const float* queries, size_t nq, size_t dim, size_t k,
                    const std::vector<uint8_t>& allowed, int threads, int32_t* out) {
    constexpr size_t pass = 8;
    std::atomic<size_t> next{0};
    auto work = [&] {
        for (size_t from; (from = next.fetch_add(pass)) < nq;) {
            size_t count = std::min(pass, nq - from);
            std::vector<std::pair<float, int32_t>> heap[pass];  // the worst on top
            for (size_t row = 0; row < n; row++) {
                if (!allowed.empty() && !allowed[row]) continue;
                for (size_t q = 0; q < count; q++) {
                    auto& h = heap[q];
                    std::pair<float, int32_t> hit{l2(queries + (from + q) * dim, rows + row * dim, dim), int32_t(row)};
                    if (h.size() == k) {
                        if (!(hit < h.front())) continue;
                        std::pop_heap(h.begin(), h.end());
                        h.pop_back();
                    }
                    h.push_back(hit);
                    std::push_heap(h.begin(), h.end());
                }
            }
            for (size_t q = 0; q < count; q++) {
                std::sort_heap(heap[q].begin(), heap[q].end());
                for (size_t i = 0; i < k; i++) out[(from + q) * k + i] = i < heap[q].size() ? heap[q][i].second : -1;
            }
        }
    };
    std::vector<std::thread> pool;
    for (int t = 1; t < threads; t++) pool.emplace_back(work);
    work();
    for (auto& t : pool) t.join();
}
