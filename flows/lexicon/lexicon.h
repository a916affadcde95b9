#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace conversed::flows::lexicon {

// One thing that a lexicon knows, and what it is called.
struct Entry {
  std::string main_keyphrase;
  std::vector<std::string> keyphrases;  // its synonyms
  std::vector<std::string> slots;       // that it fills; none: the slot with the lexicon's name
  nlohmann::json data;                  // handed on with each hit
};

// A lexicon, made ready to be searched. Finding costs some look-ups a word of the message, whatever
// the number of entries. Immutable; threads share it without locks.
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

// The keyphrases of the lexicons in a text, as `input.slots` holds them: a slot's name → its hits
// in the text's order, each `{keyphrase, synonym, lower, count, neg, data, offset: {start, end},
// lexiconId}`. Phrases are compared over whole words (see words.h). Where hits overlap, the one of
// more words wins, then the one that begins first; phrases that are the same in several entries hit
// all of them. `synonym` is the phrase of the entry that was found, `keyphrase` its main one,
// `lower` that in lower case, `count` how often the entry was found in the text, `neg` whether a
// negation stands before it. Offsets count UTF-16 code units. Of a longer text the first 2000 words
// are searched. An empty object if there is nothing. Thread-safe.
[[nodiscard]] nlohmann::json find_slots(std::string_view text,
                                        std::span<const Lexicon* const> lexicons);

}  // namespace conversed::flows::lexicon
