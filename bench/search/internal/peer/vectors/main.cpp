// Command peers runs one C++ vector index for the benchmark: it reads commands,
// one a line, and answers each with one line of JSON. A process of its own for
// each engine lets the benchmark interleave engines and read their memory.
//
//   peers ENGINE DIM M EFC     ENGINE: hnswlib, faiss, faiss-sq8, these two also with
//                              -debian: the library's own kernels; faiss-ivfpqfs
//
//   build FILE N THREADS       {"seconds":…,"bytes":…}  rows of float32, mapped
//   search FILE NQ K EF THREADS SECONDS OUT
//                              {"seconds":…,"queries":…} whole rounds over the
//                              queries until SECONDS are over; OUT gets the rows
//                              found, int32, K to a query, -1 for none
//   filter FILE                {}  a byte a row, 0 is not allowed; "-": all are
//   replace FILE ROWS N THREADS
//                              {"seconds":…}  FILE: N vectors; ROWS: uint32
//   truth FILE N QFILE NQ K THREADS OUT ALLOWED
//                              {"seconds":…}  OUT as in search, by comparing
//                              with every row; ALLOWED as in filter
//   save PATH                  {"seconds":…,"bytes":…}  load PATH: the same
//
// A failed command answers {"error":…,"unsupported":true|false}. bytes are the
// anonymous resident memory that the command added, or the size of the file.
// Numbers in files are in the machine's byte order.
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "engine.h"
#include "exact.h"

namespace {

// Mapped is a file mapped read-only: what it holds is not the index's memory.
class Mapped {
   public:
    Mapped(const std::string& path, size_t want) : size_(want) {
        int fd = open(path.c_str(), O_RDONLY);
        struct stat st;
        if (fd < 0 || fstat(fd, &st) != 0) throw std::runtime_error("cannot open " + path);
        if (static_cast<size_t>(st.st_size) < want) throw std::runtime_error(path + " is too short");
        at_ = mmap(nullptr, want, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
        close(fd);
        if (at_ == MAP_FAILED) throw std::runtime_error("cannot map " + path);
    }
    ~Mapped() { munmap(at_, size_); }
    template <class T>
    const T* as() const {
        return static_cast<const T*>(at_);
    }

   private:
    size_t size_;
    void* at_;
};

// resident is the anonymous resident memory of the process, in bytes.
size_t resident() {
    malloc_trim(0);
    std::ifstream in("/proc/self/status");
    std::string word;
    size_t kib = 0;
    while (in >> word)
        if (word == "RssAnon:") in >> kib;
    return kib * 1024;
}

size_t file_size(const std::string& path) {
    struct stat st;
    if (stat(path.c_str(), &st) != 0) throw std::runtime_error("cannot stat " + path);
    return st.st_size;
}

class Clock {
   public:
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }

   private:
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

std::string answer(double seconds, const char* key, size_t value) {
    char line[128];
    snprintf(line, sizeof line, "{\"seconds\":%.9f,\"%s\":%zu}", seconds, key, value);
    return line;
}

std::vector<uint8_t> mask_of(const std::string& file) {
    if (file == "-") return {};
    size_t n = file_size(file);
    Mapped bytes(file, n);
    return std::vector<uint8_t>(bytes.as<uint8_t>(), bytes.as<uint8_t>() + n);
}

void write(const std::string& out, const std::vector<int32_t>& found) {
    std::ofstream to(out, std::ios::binary);
    to.write(reinterpret_cast<const char*>(found.data()), found.size() * sizeof(int32_t));
    if (!to.flush()) throw std::runtime_error("cannot write " + out);
}

struct Driver {
    Params p;
    std::unique_ptr<Engine> engine;

    std::string build(std::istream& in) {
        std::string file;
        size_t n;
        int threads;
        if (!(in >> file >> n >> threads)) throw std::runtime_error("build FILE N THREADS");
        Mapped rows(file, n * p.dim * sizeof(float));
        size_t before = resident();
        Clock clock;
        engine->add(rows.as<float>(), n, threads);
        double took = clock.seconds();
        return answer(took, "bytes", resident() - before);
    }

    std::string search(std::istream& in) {
        std::string file, out;
        size_t n, k, ef;
        int threads;
        double least;
        if (!(in >> file >> n >> k >> ef >> threads >> least >> out)) throw std::runtime_error("search FILE NQ K EF THREADS SECONDS OUT");
        Mapped queries(file, n * p.dim * sizeof(float));
        std::vector<int32_t> found(n * k);
        size_t rounds = 0;
        Clock clock;
        do {
            engine->search(queries.as<float>(), n, k, ef, threads, found.data());
            rounds++;
        } while (clock.seconds() < least);
        double took = clock.seconds();
        write(out, found);
        return answer(took, "queries", rounds * n);
    }

    std::string filter(std::istream& in) {
        std::string file;
        if (!(in >> file)) throw std::runtime_error("filter FILE");
        engine->filter(mask_of(file));
        return "{}";
    }

    std::string replace(std::istream& in) {
        std::string file, rows;
        size_t n;
        int threads;
        if (!(in >> file >> rows >> n >> threads)) throw std::runtime_error("replace FILE ROWS N THREADS");
        Mapped vectors(file, n * p.dim * sizeof(float)), which(rows, n * sizeof(uint32_t));
        std::vector<uint32_t> ids(which.as<uint32_t>(), which.as<uint32_t>() + n);
        Clock clock;
        engine->replace(vectors.as<float>(), ids, threads);
        return answer(clock.seconds(), "rows", n);
    }

    std::string truth(std::istream& in) {
        std::string file, qfile, out, mask;
        size_t n, nq, k;
        int threads;
        if (!(in >> file >> n >> qfile >> nq >> k >> threads >> out >> mask)) throw std::runtime_error("truth FILE N QFILE NQ K THREADS OUT ALLOWED");
        Mapped rows(file, n * p.dim * sizeof(float)), queries(qfile, nq * p.dim * sizeof(float));
        std::vector<uint8_t> allowed = mask_of(mask);
        std::vector<int32_t> found(nq * k);
        Clock clock;
        nearest(rows.as<float>(), n, queries.as<float>(), nq, p.dim, k, allowed, threads, found.data());
        double took = clock.seconds();
        write(out, found);
        return answer(took, "queries", nq);
    }

    std::string file(std::istream& in, bool load) {
        std::string path;
        if (!(in >> path)) throw std::runtime_error("save|load PATH");
        Clock clock;
        if (load)
            engine->load(path);
        else
            engine->save(path);
        return answer(clock.seconds(), "bytes", file_size(path));
    }

    std::string command(const std::string& line) {
        std::istringstream in(line);
        std::string verb;
        in >> verb;
        if (verb == "build") return build(in);
        if (verb == "search") return search(in);
        if (verb == "filter") return filter(in);
        if (verb == "replace") return replace(in);
        if (verb == "truth") return truth(in);
        if (verb == "save" || verb == "load") return file(in, verb == "load");
        throw std::runtime_error("unknown command " + verb);
    }
};

std::unique_ptr<Engine> new_engine(const std::string& name, const Params& p) {
    if (name == "hnswlib") return new_hnswlib(p);
    if (name == "faiss" || name == "faiss-debian") return new_faiss(p, false, name == "faiss");
    if (name == "faiss-sq8" || name == "faiss-sq8-debian") return new_faiss(p, true, name == "faiss-sq8");
    if (name == "faiss-ivfpqfs") return new_ivfpq(p);
    throw std::runtime_error("unknown engine " + name);
}

std::string failure(const std::exception& e) {
    std::string text;
    for (const char* c = e.what(); *c; c++)
        if (*c != '"' && *c != '\\' && static_cast<unsigned char>(*c) >= ' ') text += *c;
    bool unsupported = dynamic_cast<const Unsupported*>(&e) != nullptr;
    return "{\"error\":\"" + text + "\",\"unsupported\":" + (unsupported ? "true" : "false") + "}";
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::cerr << "usage: peers ENGINE DIM M EFC\n";
        return 2;
    }
    Driver d;
    try {
        d.p = Params{std::stoul(argv[2]), std::stoul(argv[3]), std::stoul(argv[4])};
        d.engine = new_engine(argv[1], d.p);
    } catch (const std::exception& e) {
        std::cerr << "peers: " << e.what() << "\n";
        return 1;
    }
    for (std::string line; std::getline(std::cin, line);) {
        try {
            std::cout << d.command(line) << std::endl;
        } catch (const std::exception& e) {
            std::cout << failure(e) << std::endl;
        }
    }
}
