#include "flows/lexicon/lexicon.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "flows/expression/text.h"
#include "flows/expression/turn_budget.h"
#include "store/model/keyed_hash.h"
#include "store/text/words.h"

namespace conversed::flows::lexicon {
namespace {

constexpr std::size_t max_words = 2000;   // of a message
constexpr std::size_t max_phrase = 1000;  // words of a keyphrase

using WordId = std::uint32_t;
using State = std::uint32_t;  // a node of the trie; 0 is its root
constexpr std::uint32_t none = 0xFFFFFFFF;

// The finalizer of SplitMix64: a step is two small numbers, which would fill few buckets.
struct StepHash {
  std::size_t operator()(std::uint64_t step) const {
    step = (step ^ (step >> 30)) * 0xbf58476d1ce4e5b9;
    step = (step ^ (step >> 27)) * 0x94d049bb133111eb;
    return step ^ (step >> 31);
  }
};

// Folded negations of the most common languages.
bool is_negation(std::string_view word) {
  static constexpr std::array<std::string_view, 32> words{
      "aucun", "aucune",  "cannot", "geen", "ikke",    "inte",  "jamais", "kein",
      "keine", "keinen",  "keiner", "nao",  "neither", "nem",   "never",  "nicht",
      "nie",   "niemals", "niet",   "no",   "non",     "nor",   "not",    "nunca",
      "ohne",  "pas",     "sans",   "sauf", "sem",     "senza", "sin",    "without"};
  return std::ranges::find(words, word) != words.end();
}

// The first word of don't, isn't, can't, ... The second word is `t`.
bool takes_negation(std::string_view word) {
  static constexpr std::array<std::string_view, 17> words{
      "aren", "can",   "couldn", "didn",    "doesn", "don",   "hadn", "hasn",  "haven",
      "isn",  "mustn", "needn",  "shouldn", "wasn",  "weren", "won",  "wouldn"};
  return std::ranges::find(words, word) != words.end();
}

}  // namespace

// A trie over the words of all phrases.
class Lexicon::Index {
 public:
  // A phrase that ends in a state. All endings of a state form a chain.
  struct Ending {
    std::uint32_t entry = 0;
    std::uint32_t phrase = 0;  // 0 is the main keyphrase, n the synonym n - 1
    std::uint32_t next = none;
  };

  explicit Index(const std::vector<Entry>& entries) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      add(entries[i].main_keyphrase, static_cast<std::uint32_t>(i), 0);
      for (std::size_t k = 0; k < entries[i].keyphrases.size(); ++k) {
        add(entries[i].keyphrases[k], static_cast<std::uint32_t>(i),
            static_cast<std::uint32_t>(k + 1));
      }
    }
  }

  [[nodiscard]] WordId word(std::string_view text) const {
    const auto found = words_.find(text);
    return found == words_.end() ? none : found->second;
  }
  [[nodiscard]] State step(State from, WordId word) const {
    const auto found = steps_.find(key(from, word));
    return found == steps_.end() ? none : found->second;
  }
  // The first phrase that ends in the state. `none` if there is none.
  [[nodiscard]] std::uint32_t ending_at(State state) const { return heads_[state]; }
  [[nodiscard]] const Ending& ending(std::uint32_t index) const { return endings_[index]; }

 private:
  static std::uint64_t key(State from, WordId word) { return (std::uint64_t{from} << 32) | word; }

  void add(const std::string& phrase, std::uint32_t entry, std::uint32_t number) {
    State state = 0;
    for (const auto& part : text::words_of(phrase, max_phrase)) {
      const WordId id = words_.emplace(part.text, static_cast<WordId>(words_.size())).first->second;
      const auto [to, fresh] = steps_.emplace(key(state, id), static_cast<State>(heads_.size()));
      if (fresh) heads_.push_back(none);
      state = to->second;
    }
    if (state == 0) return;  // a phrase of only punctuation can't be found
    // Entries are added one after the other, so an earlier phrase of this entry that ends here is
    // the chain's head. Walking through the chain would cost n² steps for a phrase that n entries
    // share.
    const auto head = heads_[state];
    if (head != none && endings_[head].entry == entry) return;  // two spellings, the same words
    endings_.push_back({entry, number, head});
    heads_[state] = static_cast<std::uint32_t>(endings_.size() - 1);
  }

  std::unordered_map<std::string, WordId, model::KeyedHash, std::equal_to<>> words_;
  std::unordered_map<std::uint64_t, State, StepHash> steps_;
  std::vector<std::uint32_t> heads_{none};  // for each state
  std::vector<Ending> endings_;
};

Lexicon::Lexicon(std::string id, std::string name, std::vector<Entry> entries)
    : id_(std::move(id)),
      name_(std::move(name)),
      entries_(std::move(entries)),
      index_(std::make_unique<const Index>(entries_)) {}

Lexicon::~Lexicon() = default;

// One search in one text. One use.
class Search {
 public:
  Search(std::string_view text, expression::TurnBudget* budget)
      : budget_(budget), words_(words_of(text)) {}

  void look_in(const Lexicon& lexicon) {
    if (!pay(words_.size())) return;
    std::vector<WordId> ids;
    ids.reserve(words_.size());
    for (const auto& word : words_) ids.push_back(lexicon.index_->word(word.text));
    for (std::size_t first = 0; first < ids.size(); ++first) {
      State state = 0;
      for (std::size_t at = first; at < ids.size() && ids[at] != none; ++at) {
        state = lexicon.index_->step(state, ids[at]);
        if (state == none || !pay(1)) break;
        if (lexicon.index_->ending_at(state) != none) {
          if (!pay(2)) return;  // it will be stored and sorted, too
          stretches_.push_back({&lexicon, state, first, at + 1});
        }
      }
    }
  }

  std::vector<Hit> hits(std::size_t most) {
    choose();
    std::vector<Hit> hits;
    for (const auto& picked : pick(most)) {
      const Stretch& stretch = *picked.stretch;
      const Entry& entry = stretch.lexicon->entries()[picked.ending->entry];
      const auto phrase = picked.ending->phrase;
      hits.push_back({.lexicon = stretch.lexicon,
                      .entry = &entry,
                      .phrase = phrase == 0 ? &entry.main_keyphrase : &entry.keyphrases[phrase - 1],
                      .count = 0,
                      .negated = negated(stretch),
                      .begin = words_[stretch.first].begin,
                      .end = words_[stretch.end - 1].end});
    }
    count(hits);
    return hits;
  }

 private:
  using Ending = Lexicon::Index::Ending;

  bool pay(std::size_t steps) { return budget_ == nullptr || budget_->step(steps); }

  std::vector<text::Word> words_of(std::string_view text) {
    constexpr std::size_t bytes_a_step = 8;  // folding looks up each character
    return pay(text.size() / bytes_a_step) ? text::words_of(text, max_words)
                                           : std::vector<text::Word>{};
  }

  // Words of the text that form a phrase of a lexicon. Several entries may share the phrase.
  struct Stretch {
    const Lexicon* lexicon;
    State state;
    std::size_t first;  // an index in words_
    std::size_t end;
  };
  struct Picked {
    const Stretch* stretch;
    const Ending* ending;
  };

  // Keeps the longest of overlapping stretches, and equal stretches of several lexicons. Longer
  // stretches come first, then earlier ones.
  void choose() {
    std::ranges::stable_sort(stretches_, [](const Stretch& a, const Stretch& b) {
      const auto long_a = a.end - a.first;
      const auto long_b = b.end - b.first;
      return long_a != long_b ? long_a > long_b : a.first < b.first;
    });
    taken_.assign(words_.size(), 0);
    std::vector<Stretch> chosen;
    for (const auto& stretch : stretches_) {
      const std::size_t by = stretch.first + 1;
      const std::size_t last = stretch.end - 1;
      // Every taken stretch is at least as long as this one. So if both ends are free, or belong to
      // the same stretch, the whole stretch does.
      const bool free = taken_[stretch.first] == 0 && taken_[last] == 0;
      const bool same = taken_[stretch.first] == by && taken_[last] == by &&
                        (stretch.end == words_.size() || taken_[stretch.end] != by);
      if (!free && !same) continue;
      for (std::size_t at = stretch.first; at < stretch.end; ++at) taken_[at] = by;
      chosen.push_back(stretch);
    }
    stretches_ = std::move(chosen);
  }

  // The entries of the first stretches, up to `most`, in the text's order. Without the limit, a
  // phrase of n entries that a text repeats m times would give n * m hits.
  [[nodiscard]] std::vector<Picked> pick(std::size_t most) const {
    std::vector<Picked> picked;
    for (const auto& stretch : stretches_) {
      const auto& index = *stretch.lexicon->index_;
      auto at = index.ending_at(stretch.state);
      for (; at != none && picked.size() < most; at = index.ending(at).next) {
        picked.push_back({&stretch, &index.ending(at)});
      }
    }
    std::ranges::stable_sort(picked, {}, [](const Picked& one) { return one.stretch->first; });
    return picked;
  }

  // Counts each found phrase once, even if the text repeats it.
  void count(std::vector<Hit>& hits) {
    std::unordered_map<const Entry*, std::int64_t> counts;
    for (const auto& hit : hits) counts.emplace(hit.entry, 0);
    std::map<std::pair<const Lexicon*, State>, std::int64_t> phrases;
    for (const auto& stretch : stretches_) ++phrases[{stretch.lexicon, stretch.state}];
    for (const auto& [phrase, times] : phrases) {
      const auto& [lexicon, state] = phrase;
      const auto& index = *lexicon->index_;
      for (auto at = index.ending_at(state); at != none && pay(1); at = index.ending(at).next) {
        const auto found = counts.find(&lexicon->entries()[index.ending(at).entry]);
        if (found != counts.end()) found->second += times;
      }
    }
    for (auto& hit : hits) hit.count = counts.at(hit.entry);
  }

  // Whether one of the few words before it in the same clause negates it.
  [[nodiscard]] bool negated(const Stretch& stretch) const {
    constexpr std::size_t reach = 3;
    for (std::size_t at = stretch.first; at > 0 && stretch.first - at < reach; --at) {
      if (words_[at].new_clause || taken_[at - 1] != 0) return false;
      const auto& word = words_[at - 1].text;
      if (is_negation(word)) return true;
      if (word == "t" && at > 1 && takes_negation(words_[at - 2].text)) return true;
    }
    return false;
  }

  expression::TurnBudget* const budget_;
  const std::vector<text::Word> words_;
  std::vector<Stretch> stretches_;
  std::vector<std::size_t> taken_;  // for each word, its stretch, from 1
};

std::vector<Hit> find_keyphrases(std::string_view text, std::span<const Lexicon* const> lexicons,
                                 std::size_t most, expression::TurnBudget* budget) {
  if (lexicons.empty()) return {};
  Search search(text, budget);
  for (const Lexicon* lexicon : lexicons) search.look_in(*lexicon);
  return search.hits(most);
}

nlohmann::json to_json(const Hit& hit) {
  const std::string& main = hit.entry->main_keyphrase;
  return {{"keyphrase", main},
          {"synonym", *hit.phrase},
          {"lower", expression::to_lower(main)},
          {"count", hit.count},
          {"neg", hit.negated},
          {"data", hit.entry->data},
          {"offset", {{"start", hit.begin}, {"end", hit.end}}},
          {"lexiconId", hit.lexicon->id()}};
}

}  // namespace conversed::flows::lexicon
