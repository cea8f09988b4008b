// hnswlib behind Engine. Its headers are compiled here with -march=native, so it
// has the kernels of this machine. Version 0.6.2 (Debian 12) takes no filter
// functor; marking the other rows as deleted walks and returns the same.
#include <hnswlib/hnswlib.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "engine.h"

namespace {

class Hnswlib : public Engine {
   public:
    explicit Hnswlib(const Params& p) : p_(p), space_(p.dim) {}

    void add(const float* rows, size_t n, int threads) override {
        index_ = std::make_unique<hnswlib::HierarchicalNSW<float>>(&space_, n, p_.m, p_.efc);
        n_ = n;
        index_->addPoint(rows, 0);  // the first becomes the entry, alone
        each(1, n, threads, [&](size_t i) { index_->addPoint(rows + i * p_.dim, i); });
    }

    void search(const float* queries, size_t n, size_t k, size_t ef, int threads, int32_t* out) override {
        index_->setEf(ef);
        each(0, n, threads, [&](size_t q) {
            auto found = index_->searchKnn(queries + q * p_.dim, k);
            int32_t* to = out + q * k;
            for (size_t i = found.size(); i < k; i++) to[i] = -1;
            for (size_t i = found.size(); i-- > 0; found.pop()) to[i] = static_cast<int32_t>(found.top().second);
        });
    }

    void filter(const std::vector<uint8_t>& allowed) override {
        for (size_t i = 0; i < marked_.size(); i++)
            if (marked_[i]) index_->unmarkDelete(i);
        marked_.assign(allowed.empty() ? 0 : n_, 0);
        for (size_t i = 0; i < allowed.size(); i++)
            if (!allowed[i]) {
                index_->markDelete(i);
                marked_[i] = 1;
            }
    }

    void replace(const float* vectors, const std::vector<uint32_t>& rows, int threads) override {
        each(0, rows.size(), threads, [&](size_t i) { index_->addPoint(vectors + i * p_.dim, rows[i]); });
    }

    void save(const std::string& path) override { index_->saveIndex(path); }

    void load(const std::string& path) override {
        index_ = std::make_unique<hnswlib::HierarchicalNSW<float>>(&space_, path);
        n_ = index_->cur_element_count;
    }

   private:
    // each calls do(from..to-1) on threads.
    template <class F>
    static void each(size_t from, size_t to, int threads, F f) {
        if (threads <= 1) {
            for (size_t i = from; i < to; i++) f(i);
            return;
        }
        std::atomic<size_t> next{from};
        std::exception_ptr failed;
        std::mutex mu;
        std::vector<std::thread> pool;
        for (int t = 0; t < threads; t++)
            pool.emplace_back([&] {
                try {
                    for (size_t i; (i = next++) < to;) f(i);
                } catch (...) {
                    std::lock_guard<std::mutex> lock(mu);
                    failed = std::current_exception();
                    next = to;
                }
            });
        for (auto& t : pool) t.join();
        if (failed) std::rethrow_exception(failed);
    }

    Params p_;
    hnswlib::InnerProductSpace space_;
    std::unique_ptr<hnswlib::HierarchicalNSW<float>> index_;
    size_t n_ = 0;
    std::vector<uint8_t> marked_;
};

}  // namespace

std::unique_ptr<Engine> new_hnswlib(const Params& p) { return std::make_unique<Hnswlib>(p); }
