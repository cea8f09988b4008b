// Command texts runs one text index written in C or C++ for the benchmark: it reads
// commands, one a line, and answers each with one line of JSON.
//
//   texts ENGINE PATH          ENGINE: fts5 (SQLite's library) or xapian
//
//   build FILE                 {"seconds":…}  FILE: a document a line, terms between
//                              spaces; document i is line i. The index is closed then
//   open                       {}
//   search K TERM…             {"seconds":…,"hits":[[document,score],…]} the best K
//                              documents with one of the terms; seconds of the search alone
//
// A failed command answers {"error":…}.
#include <sqlite3.h>
#include <xapian.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// Documents that are written in one transaction, as the other engines are given them.
constexpr size_t batch = 1000;

struct Hit {
    long document;
    double score;
};

class Engine {
   public:
    virtual ~Engine() = default;
    virtual void build(std::istream& lines) = 0;
    virtual void open() = 0;
    virtual std::vector<Hit> search(const std::vector<std::string>& terms, int k) = 0;
};

// FTS5 without the texts, ranked by its bm25(): the settings of the one in Go.
class FTS5 : public Engine {
   public:
    explicit FTS5(std::string path) : path_(std::move(path)) {}
    ~FTS5() override { close(); }

    void build(std::istream& lines) override {
        connect();
        run("CREATE VIRTUAL TABLE d USING fts5(t, content='', tokenize='ascii')");
        sqlite3_stmt* add = prepare("INSERT INTO d(rowid, t) VALUES(?, ?)");
        std::string line;
        sqlite3_int64 row = 0;
        while (std::getline(lines, line)) {
            if (row % batch == 0) run(row == 0 ? "BEGIN" : "COMMIT; BEGIN");
            check(sqlite3_bind_int64(add, 1, ++row));
            check(sqlite3_bind_text(add, 2, line.data(), static_cast<int>(line.size()), SQLITE_STATIC));
            if (sqlite3_step(add) != SQLITE_DONE) check(SQLITE_ERROR);
            check(sqlite3_reset(add));
        }
        if (row > 0) run("COMMIT");
        sqlite3_finalize(add);
        close();
    }

    void open() override {
        connect();
        ask_ = prepare("SELECT rowid - 1, -rank FROM d WHERE d MATCH ? ORDER BY rank LIMIT ?");
    }

    std::vector<Hit> search(const std::vector<std::string>& terms, int k) override {
        std::string match;
        for (const auto& t : terms) match += (match.empty() ? "\"" : " OR \"") + t + "\"";
        check(sqlite3_bind_text(ask_, 1, match.data(), static_cast<int>(match.size()), SQLITE_STATIC));
        check(sqlite3_bind_int(ask_, 2, k));
        std::vector<Hit> hits;
        int rc;
        while ((rc = sqlite3_step(ask_)) == SQLITE_ROW)
            hits.push_back({static_cast<long>(sqlite3_column_int64(ask_, 0)), sqlite3_column_double(ask_, 1)});
        if (rc != SQLITE_DONE) check(rc);
        check(sqlite3_reset(ask_));
        return hits;
    }

   private:
    void connect() {
        check(sqlite3_open((path_ + ".db").c_str(), &db_));
        run("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA cache_size=-163840");
    }
    void close() {
        sqlite3_finalize(ask_);
        sqlite3_close(db_);
        ask_ = nullptr;
        db_ = nullptr;
    }
    void run(const char* sql) { check(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr)); }
    sqlite3_stmt* prepare(const char* sql) {
        sqlite3_stmt* s = nullptr;
        check(sqlite3_prepare_v2(db_, sql, -1, &s, nullptr));
        return s;
    }
    void check(int rc) {
        if (rc != SQLITE_OK) throw std::runtime_error(db_ ? sqlite3_errmsg(db_) : sqlite3_errstr(rc));
    }

    std::string path_;
    sqlite3* db_ = nullptr;
    sqlite3_stmt* ask_ = nullptr;
};

// Xapian with its default backend and BM25 of the same constants; no positions are kept.
class Xap : public Engine {
   public:
    explicit Xap(std::string path) : path_(std::move(path)) {}

    void build(std::istream& lines) override {
        Xapian::WritableDatabase db(path_, Xapian::DB_CREATE | Xapian::DB_NO_SYNC);
        std::string line, term;
        for (size_t row = 1; std::getline(lines, line); row++) {
            Xapian::Document doc;
            for (std::istringstream words(line); words >> term;) doc.add_term(term);
            db.replace_document(static_cast<Xapian::docid>(row), doc);
            if (row % batch == 0) db.commit();
        }
        db.close();
    }

    void open() override { db_ = std::make_unique<Xapian::Database>(path_); }

    std::vector<Hit> search(const std::vector<std::string>& terms, int k) override {
        Xapian::Enquire enquire(*db_);
        enquire.set_weighting_scheme(Xapian::BM25Weight(1.2, 0, 1, 0.75, 0));
        enquire.set_query(Xapian::Query(Xapian::Query::OP_OR, terms.begin(), terms.end()));
        std::vector<Hit> hits;
        auto found = enquire.get_mset(0, k);
        for (auto at = found.begin(); at != found.end(); ++at) hits.push_back({static_cast<long>(*at) - 1, at.get_weight()});
        return hits;
    }

   private:
    std::string path_;
    std::unique_ptr<Xapian::Database> db_;
};

std::unique_ptr<Engine> engine(const std::string& name, const std::string& path) {
    if (name == "fts5") return std::make_unique<FTS5>(path);
    if (name == "xapian") return std::make_unique<Xap>(path);
    throw std::runtime_error("unknown engine " + name);
}

class Clock {
   public:
    double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }

   private:
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

std::string number(double x) {
    char digits[40];
    snprintf(digits, sizeof digits, "%.17g", x);
    return digits;
}

std::string answer(Engine& e, std::istringstream& words) {
    std::string command;
    words >> command;
    if (command == "build") {
        std::string file;
        words >> file;
        std::ifstream lines(file);
        if (!lines) throw std::runtime_error("cannot open " + file);
        Clock clock;
        e.build(lines);
        return "{\"seconds\":" + number(clock.seconds()) + "}";
    }
    if (command == "open") {
        e.open();
        return "{}";
    }
    if (command != "search") throw std::runtime_error("unknown command " + command);
    int k = 0;
    words >> k;
    std::vector<std::string> terms;
    for (std::string t; words >> t;) terms.push_back(t);
    Clock clock;
    auto hits = e.search(terms, k);
    std::string out = "{\"seconds\":" + number(clock.seconds()) + ",\"hits\":[";
    for (size_t i = 0; i < hits.size(); i++)
        out += (i ? ",[" : "[") + std::to_string(hits[i].document) + "," + number(hits[i].score) + "]";
    return out + "]}";
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (char c : text)
        if (c == '"' || c == '\\') (out += '\\') += c;
        else out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    return out + "\"";
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::cerr << "usage: texts ENGINE PATH\n";
        return 2;
    }
    try {
        auto e = engine(argv[1], argv[2]);
        for (std::string line; std::getline(std::cin, line);) {
            std::string out;
            std::istringstream words(line);
            try {
                out = answer(*e, words);
            } catch (const Xapian::Error& err) {
                out = "{\"error\":" + quoted(err.get_description()) + "}";
            } catch (const std::exception& err) {
                out = "{\"error\":" + quoted(err.what()) + "}";
            }
            std::cout << out << std::endl;
        }
    } catch (const std::exception& err) {
        std::cerr << "texts: " << err.what() << "\n";
        return 1;
    }
}
