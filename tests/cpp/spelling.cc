// SPDX-License-Identifier: MIT
// A real program on std::pmr containers: Peter Norvig's spelling corrector (norvig.com/spell-correct.html). It makes
// some 100 000 strings for a word, all that are two edits away, and forgets them. Written once; it runs with
// the standard containers and with those in a scope's slots, and both must correct alike.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory_resource>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <tidepool/tidepool.hpp>

namespace
{

using words = std::unordered_map<std::string, int>; // how often each occurs

words train(const char *path)
{
    words counts;
    std::ifstream text(path);
    std::string word;
    for (int c = text.get(); text.good(); c = text.get()) {
        if (std::isalpha(c))
            word += static_cast<char>(std::tolower(c));
        else if (!word.empty())
            ++counts[std::exchange(word, {})];
    }
    return counts;
}

int count_of(const words &counts, std::string_view word)
{
    auto found = counts.find(std::string(word));
    return found == counts.end() ? 0 : found->second;
}

// What the two versions differ in: where strings and sets have their memory.
struct standard_memory {
    using string = std::string;
    using set = std::unordered_set<std::string>;
    set make_set()
    {
        return {};
    }
    string make(std::string_view text)
    {
        return string(text);
    }
};

struct pool_memory {
    using string = std::pmr::string;
    using set = std::pmr::unordered_set<std::pmr::string>;
    tidepool::resource *memory;
    set make_set()
    {
        return set(memory);
    }
    string make(std::string_view text)
    {
        return string(text, memory);
    }
};

// All that is one edit away: a letter less, two exchanged, another one, one more.
template <class M> void edits(M &m, std::string_view word, typename M::set &out)
{
    for (size_t i = 0; i <= word.size(); i++) {
        const std::string_view left = word.substr(0, i), right = word.substr(i);
        auto put = [&](std::string_view middle, size_t skipped) {
            typename M::string made = m.make(left);
            made += middle;
            made += right.substr(skipped);
            out.insert(std::move(made));
        };
        if (!right.empty())
            put("", 1);
        if (right.size() > 1) {
            const char exchanged[] = {right[1], right[0]};
            put({exchanged, 2}, 2);
        }
        for (char c = 'a'; c <= 'z'; c++) {
            if (!right.empty())
                put({&c, 1}, 1);
            put({&c, 1}, 0);
        }
    }
}

template <class Set> std::string_view best(const words &counts, const Set &candidates)
{
    std::string_view most;
    for (const auto &word : candidates) {
        const int own = count_of(counts, word), before = count_of(counts, most);
        if (own > before || (own == before && own > 0 && std::string_view(word) < most))
            most = word;
    }
    return most;
}

template <class M>
std::string correct(M m, const words &counts, std::string_view word, size_t &made)
{
    if (count_of(counts, word) > 0)
        return std::string(word);
    auto once = m.make_set(), twice = m.make_set();
    edits(m, word, once);
    std::string_view found = best(counts, once);
    if (found.empty()) {
        for (const auto &near : once)
            edits(m, near, twice);
        found = best(counts, twice);
    }
    made = once.size() + twice.size();
    return std::string(found.empty() ? word : found);
}

[[noreturn]] void fail(const char *what, std::string_view word)
{
    std::fprintf(stderr, "%s: %.*s\n", what, static_cast<int>(word.size()), word.data());
    std::exit(1);
}

} // namespace

int main(int, char **arguments)
{
    const words counts = train(arguments[1]);
    tidepool::pool pool;
    uint64_t allocations[2] = {};
    size_t most = 0;
    int corrected = 0;
    for (int round = 0; round < 2; round++)
        for (const char *word :
             {"destryoed", "memroy", "scoope", "acquird", "inaccesible", "rewnid", "zzzzzzzz"}) {
            size_t made = 0, made_standard = 0;
            const std::string wanted = correct(standard_memory(), counts, word, made_standard);
            tidepool::scope scope(pool);
            tidepool::resource memory(pool);
            if (correct(pool_memory{&memory}, counts, word, made) != wanted ||
                made != made_standard)
                fail("the two differ", word);
            most = std::max(most, made);
            corrected += wanted != word;
            tide_pool_statistics stats;
            if (tide_pool_stats(pool, &stats) != TIDE_OK)
                fail("no statistics", word);
            allocations[round] = stats.allocations;
        }
    std::printf("%d corrected, %zu strings at most, %d allocations by the pool\n", corrected, most,
                static_cast<int>(allocations[0]));
    return corrected < 10 || most < 100000 || allocations[0] > 40 ||
           allocations[1] != allocations[0];
}
