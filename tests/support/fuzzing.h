#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace conversed::tests {

struct CorpusEntry {
  std::string name;
  std::string text;
};

// The files of a folder, by name.
inline std::vector<CorpusEntry> read_corpus(const std::filesystem::path& folder) {
  std::vector<CorpusEntry> entries;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(file.path(), std::ios::binary);
    entries.push_back(
        {file.path().filename().string(),
         std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>())});
  }
  std::ranges::sort(entries, {}, &CorpusEntry::name);
  return entries;
}

// Makes inputs out of a corpus by cutting, mangling and mixing. `pieces` are words of the language.
// Prints the seed; CONVERSED_TEST_SEED repeats a run.
class Mutator {
 public:
  Mutator(std::vector<CorpusEntry> corpus, std::vector<std::string> pieces)
      : corpus_(std::move(corpus)), pieces_(std::move(pieces)) {
    const char* chosen = std::getenv("CONVERSED_TEST_SEED");
    const std::uint64_t seed =
        chosen != nullptr ? std::strtoull(chosen, nullptr, 10) : std::random_device{}();
    std::cout << "seed " << seed << '\n';
    random_.seed(seed);
  }

  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(random_() % bound); }
  const CorpusEntry& entry() { return corpus_[below(corpus_.size())]; }

  std::string mutate(std::string text) {
    for (std::size_t change = 1 + below(4); change > 0; --change) {
      if (text.empty()) text = pieces_[below(pieces_.size())];
      const std::size_t at = below(text.size());
      switch (below(7)) {
        case 0:
          text.erase(at, 1 + below(20));
          break;
        case 1:
        case 2:
          text.insert(at, pieces_[below(pieces_.size())]);
          break;
        case 3:
          text[at] = static_cast<char>(below(256));
          break;
        case 4:
          text.insert(at, text.substr(below(text.size()), below(60)));
          break;
        case 5: {
          const std::string& other = entry().text;
          if (!other.empty()) text.replace(at, below(60), other.substr(below(other.size()), 200));
          break;
        }
        default:
          text.resize(at);
      }
    }
    return text;
  }

 private:
  std::vector<CorpusEntry> corpus_;
  std::vector<std::string> pieces_;
  std::mt19937_64 random_;
};

// Calls `once` `rounds` times, or, with CONVERSED_NIGHTLY=1, for CONVERSED_TEST_FUZZ_MINUTES
// (default: 20). Ends at the first failure.
template <typename Once>
void fuzz(std::size_t rounds, Once&& once) {
  const char* nightly = std::getenv("CONVERSED_NIGHTLY");
  if (nightly == nullptr || std::string(nightly) != "1") {
    for (std::size_t i = 0; i < rounds && !testing::Test::HasFailure(); ++i) once();
    return;
  }
  const char* wanted = std::getenv("CONVERSED_TEST_FUZZ_MINUTES");
  const auto minutes = std::chrono::minutes(wanted != nullptr ? std::atoi(wanted) : 20);
  const auto until = std::chrono::steady_clock::now() + minutes;
  std::size_t done = 0;
  for (; std::chrono::steady_clock::now() < until && !testing::Test::HasFailure(); ++done) once();
  std::cout << done << " inputs\n";
}

// A file with the present input. If the input crashes the program, add the file to the corpus.
class LastInput {
 public:
  explicit LastInput(const std::string& name) : path_("last-input-" + name) {}
  void keep(const std::string& text) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << text;
  }

 private:
  std::string path_;
};

}  // namespace conversed::tests
