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
  std::vector<std::string> slots;       // that it fills; none: the slot with the lexicon's name
  nlohmann::json data;                  // copied to each hit
};

// A lexicon with its index. Making one is expensive and done once for each import. A search takes
// some look-ups a word of the text, regardless of the number of entries. Immutable; threads share
// it without locks.
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

// An entry that was found in a text. Refers to its Lexicon, which must outlive it.
struct Hit {
  const Lexicon* lexicon = nullptr;
  const Entry* entry = nullptr;
  const std::string* phrase = nullptr;  // the found one of the entry
  std::int64_t count = 0;               // how often the entry was found in the text
  bool negated = false;                 // a negation stands before it
  std::size_t begin = 0;                // in the text, in UTF-16 code units
  std::size_t end = 0;

  // The slots that it fills; at least one.
  [[nodiscard]] std::span<const std::string> slots() const {
    return entry->slots.empty() ? std::span(&lexicon->name(), 1) : std::span(entry->slots);
  }
};

// The hits of the lexicons in a text, in its order. Phrases match whole words (words.h). When hits
// overlap, the hit with the most words stays, then the one that begins first. Equal phrases of
// several entries all hit. Only `most` hits are returned, chosen by the same order; `count` counts
// the others, too. The first 2000 words of the text are searched. The budget pays for the look-ups;
// once it is spent, hits are missing. Null: nothing is paid. Thread-safe.
[[nodiscard]] std::vector<Hit> find_keyphrases(std::string_view text,
                                               std::span<const Lexicon* const> lexicons,
                                               std::size_t most,
                                               expression::TurnBudget* budget = nullptr);

// The hit in `input.slots`: `{keyphrase, synonym, lower, count, neg, data, offset: {start, end},
// lexiconId}`. `synonym` is the found phrase, `keyphrase` the entry's main one, `lower` the main
// one in lower case. Copies the entry's data, of any size.
[[nodiscard]] nlohmann::json to_json(const Hit& hit);

}  // namespace conversed::flows::lexicon
