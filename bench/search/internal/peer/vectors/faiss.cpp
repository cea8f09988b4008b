// FAISS HNSW behind Engine: IndexHNSWFlat, or IndexHNSWSQ with 8 bits.
//
// Debian builds the library for the oldest x86-64, without AVX. To be fair, the
// storage below the graph can be replaced by one with the same content whose
// distances are compiled here with -march=native; the graph, its construction
// and its walk stay the library's.
#include <faiss/IndexHNSW.h>
#include <faiss/IndexScalarQuantizer.h>
#include <faiss/impl/IDSelector.h>
#include <faiss/index_io.h>
#include <omp.h>

#include <algorithm>

#include "engine.h"
#include "kernel.h"

namespace {

struct NativeFlat : faiss::IndexFlatL2 {
    using IndexFlatL2::IndexFlatL2;
    struct Computer : faiss::FlatCodesDistanceComputer {
        size_t dim;
        const float* q = nullptr;
        explicit Computer(const NativeFlat& s) : FlatCodesDistanceComputer(s.codes.data(), s.code_size), dim(s.d) {}
        void set_query(const float* x) override { q = x; }
        const float* row(idx_t i) const { return reinterpret_cast<const float*>(codes + i * code_size); }
        float distance_to_code(const uint8_t* code) override { return l2(q, reinterpret_cast<const float*>(code), dim); }
        float symmetric_dis(idx_t i, idx_t j) override { return l2(row(i), row(j), dim); }
    };
    faiss::FlatCodesDistanceComputer* get_FlatCodesDistanceComputer() const override { return new Computer(*this); }
};

struct NativeSQ8 : faiss::IndexScalarQuantizer {
    using IndexScalarQuantizer::IndexScalarQuantizer;
    // A code c of dimension j stands for low[j] + c*step[j].
    struct Computer : faiss::FlatCodesDistanceComputer {
        size_t dim;
        std::vector<float> low, step, base;
        explicit Computer(const NativeSQ8& s)
            : FlatCodesDistanceComputer(s.codes.data(), s.code_size), dim(s.d), low(dim), step(dim), base(dim) {
            for (size_t j = 0; j < dim; j++) {  // sq.trained: minima, then ranges
                step[j] = s.sq.trained[dim + j] / 255;
                low[j] = s.sq.trained[j] + step[j] / 2;
            }
        }
        void set_query(const float* x) override {
            for (size_t j = 0; j < dim; j++) base[j] = x[j] - low[j];
        }
        float distance_to_code(const uint8_t* code) override { return l2_code(base.data(), step.data(), code, dim); }
        float symmetric_dis(idx_t i, idx_t j) override {
            return l2_codes(step.data(), codes + i * code_size, codes + j * code_size, dim);
        }
    };
    faiss::FlatCodesDistanceComputer* get_FlatCodesDistanceComputer() const override { return new Computer(*this); }
};

struct Allowed : faiss::IDSelector {
    const std::vector<uint8_t>& rows;
    explicit Allowed(const std::vector<uint8_t>& r) : rows(r) {}
    bool is_member(idx_t id) const override { return rows[id]; }
};

class Faiss : public Engine {
   public:
    Faiss(const Params& p, bool sq8, bool native) : p_(p), sq8_(sq8), native_(native) {}

    void add(const float* rows, size_t n, int threads) override {
        if (sq8_)
            index_ = std::make_unique<faiss::IndexHNSWSQ>(p_.dim, faiss::ScalarQuantizer::QT_8bit, p_.m);
        else
            index_ = std::make_unique<faiss::IndexHNSWFlat>(p_.dim, p_.m);
        index_->hnsw.efConstruction = p_.efc;
        nativise();
        omp_set_num_threads(threads);
        index_->train(std::min<size_t>(n, 20000), rows);
        index_->add(n, rows);
    }

    void search(const float* queries, size_t n, size_t k, size_t ef, int threads, int32_t* out) override {
        omp_set_num_threads(threads);
        faiss::SearchParametersHNSW params;
        params.efSearch = ef;
        Allowed allowed(allowed_);
        if (!allowed_.empty()) params.sel = &allowed;
        std::vector<faiss::Index::idx_t> labels(n * k);
        std::vector<float> distances(n * k);
        index_->search(n, queries, k, distances.data(), labels.data(), &params);
        for (size_t i = 0; i < n * k; i++) {
            // What the walk visited first fills the room when fewer are allowed.
            bool good = labels[i] >= 0 && (allowed_.empty() || allowed_[labels[i]]);
            out[i] = good ? static_cast<int32_t>(labels[i]) : -1;
        }
    }

    void filter(const std::vector<uint8_t>& allowed) override { allowed_ = allowed; }

    void replace(const float*, const std::vector<uint32_t>&, int) override {
        throw Unsupported("FAISS HNSW neither removes nor replaces vectors");
    }

    void save(const std::string& path) override { faiss::write_index(index_.get(), path.c_str()); }

    void load(const std::string& path) override {
        std::unique_ptr<faiss::Index> read(faiss::read_index(path.c_str()));
        if (!dynamic_cast<faiss::IndexHNSW*>(read.get())) throw std::runtime_error("no HNSW in " + path);
        index_.reset(static_cast<faiss::IndexHNSW*>(read.release()));
        nativise();
    }

   private:
    // nativise moves what the storage holds into one with kernels of our own.
    void nativise() {
        if (!native_) return;
        if (sq8_) {
            auto* old = dynamic_cast<faiss::IndexScalarQuantizer*>(index_->storage);
            auto* fresh = new NativeSQ8(p_.dim, faiss::ScalarQuantizer::QT_8bit);
            fresh->sq = old->sq;
            take(old, fresh);
        } else {
            auto* old = dynamic_cast<faiss::IndexFlat*>(index_->storage);
            take(old, new NativeFlat(p_.dim));
        }
    }

    void take(faiss::IndexFlatCodes* old, faiss::IndexFlatCodes* fresh) {
        fresh->codes.swap(old->codes);
        fresh->ntotal = old->ntotal;
        fresh->is_trained = old->is_trained;
        delete old;
        index_->storage = fresh;
        index_->own_fields = true;
    }

    Params p_;
    bool sq8_, native_;
    std::unique_ptr<faiss::IndexHNSW> index_;
    std::vector<uint8_t> allowed_;
};

}  // namespace

std::unique_ptr<Engine> new_faiss(const Params& p, bool sq8, bool native) { return std::make_unique<Faiss>(p, sq8, native); }
