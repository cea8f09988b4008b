// FAISS IVF with product quantisation of 4 bits, scanned in registers (fast scan), and
// the best re-ranked by full vectors.
//
// Debian builds the library for the oldest x86-64: the scan has no AVX2 there, and its
// loops cannot be compiled here as the distances below a graph can. ef is read as the
// work of a graph would be: a quarter as many lists are probed.
#include <faiss/IndexFlat.h>
#include <faiss/IndexIVFPQFastScan.h>
#include <faiss/IndexRefine.h>
#include <faiss/index_io.h>
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "engine.h"

namespace {

constexpr size_t lists_of_root = 4;    // lists for each of the square root of n
constexpr size_t floats_a_code = 2;    // that 4 bits stand for
constexpr float ranked_again = 10;     // times k
constexpr size_t ef_a_list = 4;

class IVFPQ : public Engine {
   public:
    explicit IVFPQ(const Params& p) : p_(p) {}

    void add(const float* rows, size_t n, int threads) override {
        omp_set_num_threads(threads);
        size_t lists = std::max<size_t>(1, std::min<size_t>(lists_of_root * std::sqrt(double(n)), n / 40));
        auto* coarse = new faiss::IndexFlatL2(p_.dim);
        ivf_ = new faiss::IndexIVFPQFastScan(coarse, p_.dim, lists, p_.dim / floats_a_code, 4);
        ivf_->own_fields = true;
        ivf_->cp.niter = 10;  // of k-means: more takes minutes in the library's build
        index_ = std::make_unique<faiss::IndexRefineFlat>(ivf_);
        index_->own_fields = true;
        index_->k_factor = ranked_again;
        index_->train(n, rows);
        index_->add(n, rows);
    }

    void search(const float* queries, size_t n, size_t k, size_t ef, int threads, int32_t* out) override {
        omp_set_num_threads(threads);
        ivf_->nprobe = std::max<size_t>(1, ef / ef_a_list);
        std::vector<faiss::Index::idx_t> labels(k);
        std::vector<float> distances(k);
        for (size_t q = 0; q < n; q++) {  // one after the other, as a node is asked
            index_->search(1, queries + q * p_.dim, k, distances.data(), labels.data());
            for (size_t i = 0; i < k; i++) out[q * k + i] = static_cast<int32_t>(labels[i]);
        }
    }

    void filter(const std::vector<uint8_t>& allowed) override {
        if (!allowed.empty()) throw Unsupported("fast scan takes no filter");
    }

    void replace(const float*, const std::vector<uint32_t>&, int) override {
        throw Unsupported("FAISS IndexRefine neither removes nor replaces vectors");
    }

    void save(const std::string& path) override { faiss::write_index(index_.get(), path.c_str()); }

    void load(const std::string& path) override {
        std::unique_ptr<faiss::Index> read(faiss::read_index(path.c_str()));
        auto* refined = dynamic_cast<faiss::IndexRefineFlat*>(read.get());
        if (!refined) throw std::runtime_error("no refined index in " + path);
        read.release();
        index_.reset(refined);
        index_->k_factor = ranked_again;
        ivf_ = dynamic_cast<faiss::IndexIVFPQFastScan*>(index_->base_index);
        if (!ivf_) throw std::runtime_error("no IVF-PQ in " + path);
    }

   private:
    Params p_;
    std::unique_ptr<faiss::IndexRefineFlat> index_;
    faiss::IndexIVFPQFastScan* ivf_ = nullptr;  // within index_
};

}  // namespace

std::unique_ptr<Engine> new_ivfpq(const Params& p) { return std::make_unique<IVFPQ>(p); }
