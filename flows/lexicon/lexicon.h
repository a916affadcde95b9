#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace conversed::flows::expression {
class TurnBudget;
}

namespace conversed::flows::lexicon {

// One entry of a lexicon with its phrases.
struct Entry {
  std::string main_keyphrase;
  std::vector<std::string> keyphrases;  // its synonyms
  std::vector<std::string> slots;  // slots that it fills; none: the slot with the lexicon's name
  nlohmann::json data;             // copied to each hit
};

// A lexicon with its index. Making one is expensive and happens once for each import. A search does
// some look-ups for each word of the text, regardless of the number of entries. Immutable. Threads
// share it without locks.
class Lexicon {
 public:
  Lexicon(std::string id, std::string name, std::vector<Entry> entries);
  ~Lexicon();
  Lexicon(const Lexicon&) = delete;
  Lexicon& operator=(const Lexicon&) = delete;

  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

 private:
  friend class Search;
  class Index;

  const std::string id_;
  const std::string name_;
  const std::vector<Entry> entries_;
  const std::unique_ptr<const Index> index_;
};

// A found entry. Refers to its Lexicon, which must outlive it.
struct Hit {
  const Lexicon* lexicon = nullptr;
  const Entry* entry = nullptr;
  const std::string* phrase = nullptr;  // the entry's phrase that was found
  std::int64_t count = 0;               // how often the entry was found in the text
  bool negated = false;                 // whether a negation precedes it
  std::size_t begin = 0;                // in the text, in UTF-16 code units
  std::size_t end = 0;

  // The slots that it fills, at least one.
  [[nodiscard]] std::span<const std::string> slots() const {
    return entry->slots.empty() ? std::span(&lexicon->name(), 1) : std::span(entry->slots);
  }
};

// The hits of the lexicons in a text, in the text's order. Phrases match whole words (words.h). Of
// overlapping hits the one with the most words stays, then the first one. Equal phrases of several
// entries are all hits. At most `most` hits are returned, chosen by the same order; `count`
// includes the others. Searches the first 2000 words of the text. The budget pays for the look-ups.
// When it is spent, hits are missing. A null budget means no payment. Thread-safe.
[[nodiscard]] std::vector<Hit> find_keyphrases(std::string_view text,
                                               std::span<const Lexicon* const> lexicons,
                                               std::size_t most,
                                               expression::TurnBudget* budget = nullptr);

// The hit as a value of `input.slots`: `{keyphrase, synonym, lower, count, neg, data, offset:
// {start, end}, lexiconId}`. `synonym` is the found phrase, `keyphrase` the entry's main one,
// `lower` the main one in lower case. Copies the entry's data, which may be large.
[[nodiscard]] nlohmann::json to_json(const Hit& hit);

}  // namespace conversed::flows::lexicon
