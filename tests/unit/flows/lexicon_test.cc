// Keyphrases in users' texts, and the speed of the search.
#include "flows/lexicon/lexicon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "store/text/words.h"
#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using lexicon::Entry;
using lexicon::Lexicon;
using nlohmann::json;
using text::phrase_of;

Lexicon cities() {
  return Lexicon("l1", "Cities",
                 {{"Paris", {"paree", "city of light"}, {"city"}, {{"country", "FR"}}},
                  {"New York", {"NYC"}, {"city"}, {}},
                  {"York", {}, {"city"}, {}},
                  {"Köln", {"Cologne"}, {"city", "german"}, {}}});
}

// `input.slots` without limits.
json slots_of(std::span<const Lexicon* const> lexicons, std::string_view text) {
  constexpr std::size_t most = 1000;
  json slots = json::object();
  for (const auto& hit : lexicon::find_keyphrases(text, lexicons, most)) {
    for (const auto& slot : hit.slots()) slots[slot].push_back(to_json(hit));
  }
  return slots;
}

json slots_of(const Lexicon& lexicon, std::string_view text) {
  const Lexicon* const all[] = {&lexicon};
  return slots_of(all, text);
}

// Entries that share one synonym.
std::vector<Entry> namesakes(int count, const json& data = nullptr) {
  std::vector<Entry> entries;
  for (int i = 0; i < count; ++i)
    entries.push_back({"entry " + std::to_string(i), {"x"}, {}, data});
  return entries;
}

std::string repeated(std::string_view word, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += word;
  return text;
}

// The main keyphrases of a slot's hits.
std::vector<std::string> found(const json& slots, const std::string& slot) {
  std::vector<std::string> list;
  if (!slots.contains(slot)) return list;
  for (const auto& hit : slots[slot]) list.push_back(hit["keyphrase"]);
  return list;
}

TEST(Words, FoldCaseAccentsAndPunctuation) {
  EXPECT_EQ(phrase_of("  Hello, WORLD!  "), "hello world");
  EXPECT_EQ(phrase_of("Straße"), phrase_of("STRASSE"));
  EXPECT_EQ(phrase_of("Orléans"), "orleans");
  EXPECT_EQ(phrase_of("Orle\u0301ans"), "orleans") << "decomposed";
  EXPECT_EQ(phrase_of("ＡＢＣ１"), "abc1");
  EXPECT_EQ(phrase_of("ΑΘΗΝΑ"), phrase_of("Αθήνα"));
  EXPECT_EQ(phrase_of("Łódź"), phrase_of("ŁÓDŹ"));
  EXPECT_EQ(phrase_of("C++"), "c + +");
  EXPECT_EQ(phrase_of("..."), "");
}

TEST(Words, KeepSignsThatMakeOtherLetters) {
  EXPECT_NE(phrase_of("か"), phrase_of("が"));
  EXPECT_NE(phrase_of("कि"), phrase_of("कु"));
}

TEST(Words, TakeCharactersApartWhereThereAreNoSpaces) {
  EXPECT_EQ(phrase_of("東京タワー"), "東 京 タ ワ ー");
  EXPECT_EQ(phrase_of("서울에"), "서 울 에");
}

TEST(Words, CountUtf16Units) {
  const auto words = text::words_of("😀 a, b", 10);
  ASSERT_EQ(words.size(), 3U);
  EXPECT_EQ(words[1].begin, 3U);
  EXPECT_EQ(words[1].end, 4U);
  EXPECT_FALSE(words[1].new_clause);
  EXPECT_TRUE(words[2].new_clause);
}

TEST(Words, TakeAnyBytes) {
  EXPECT_EQ(phrase_of("a\xFF\xC0 b"), phrase_of("a\xEF\xBF\xBD\xEF\xBF\xBD b"));
  EXPECT_EQ(text::words_of("a b c d", 2).size(), 2U);
}

TEST(Lexicon, GivesTheDocumentedFieldsOfASlot) {
  const auto lexicon = cities();
  EXPECT_EQ(slots_of(lexicon, "From the City of Light, please"), json::parse(R"({"city":[{
      "keyphrase":"Paris","synonym":"city of light","lower":"paris","count":1,"neg":false,
      "data":{"country":"FR"},"offset":{"start":9,"end":22},"lexiconId":"l1"}]})"));
}

TEST(Lexicon, PrefersTheLongestPhraseAndWholeWords) {
  const auto lexicon = cities();
  EXPECT_EQ(found(slots_of(lexicon, "to new york"), "city"), (Texts{"New York"}));
  EXPECT_EQ(found(slots_of(lexicon, "to York"), "city"), (Texts{"York"}));
  EXPECT_EQ(slots_of(lexicon, "Yorkshire parisian"), json::object());
}

TEST(Lexicon, PrefersTheLongerOfTwoThatOverlapThoughItBeginsLater) {
  const Lexicon lexicon("l", "L", {{"a b", {}, {"s"}, {}}, {"b c d", {}, {"s"}, {}}});
  EXPECT_EQ(found(slots_of(lexicon, "a b c d"), "s"), (Texts{"b c d"}));
}

TEST(Lexicon, FillsEverySlotOfAnEntryAndItsOwnNameWithoutAny) {
  const auto lexicon = cities();
  const auto slots = slots_of(lexicon, "KOLN");
  EXPECT_EQ(found(slots, "city"), (Texts{"Köln"}));
  EXPECT_EQ(found(slots, "german"), (Texts{"Köln"}));
  const Lexicon plain("l", "Fruit", {{"apple", {}, {}, {}}});
  EXPECT_EQ(found(slots_of(plain, "an apple"), "Fruit"), (Texts{"apple"}));
}

TEST(Lexicon, CountsAndSeesNegations) {
  const auto lexicon = cities();
  const auto slots = slots_of(lexicon, "not to Paris but to NYC, paree is full");
  ASSERT_EQ(found(slots, "city"), (Texts{"Paris", "New York", "Paris"}));
  EXPECT_EQ(slots["city"][0]["count"], 2);
  EXPECT_EQ(slots["city"][0]["neg"], true);
  EXPECT_EQ(slots["city"][1]["neg"], false) << "the negation belongs to Paris";
  EXPECT_EQ(slots["city"][2]["neg"], false);
  EXPECT_EQ(slots_of(lexicon, "No, Paris")["city"][0]["neg"], false);
  EXPECT_EQ(slots_of(lexicon, "I don't want Paris")["city"][0]["neg"], true);
  EXPECT_EQ(slots_of(lexicon, "nicht nach Köln")["city"][0]["neg"], true);
}

TEST(Lexicon, FindsTextOfAnyLanguage) {
  const Lexicon lexicon("l", "L",
                        {{"東京", {}, {"s"}, {}},
                         {"Москва", {}, {"s"}, {}},
                         {"القاهرة", {}, {"s"}, {}},
                         {"서울", {}, {"s"}, {}}});
  EXPECT_EQ(found(slots_of(lexicon, "東京タワーへ"), "s"), (Texts{"東京"}));
  EXPECT_EQ(found(slots_of(lexicon, "в МОСКВА!"), "s"), (Texts{"Москва"}));
  EXPECT_EQ(found(slots_of(lexicon, "إلى القاهِرة"), "s"), (Texts{"القاهرة"}));
  EXPECT_EQ(found(slots_of(lexicon, "서울에 가요"), "s"), (Texts{"서울"}));
}

TEST(Lexicon, HitsOfEqualStretchesInSeveralLexiconsAllStay) {
  const Lexicon one("l1", "A", {{"Orange", {}, {"fruit"}, {}}});
  const Lexicon two("l2", "B", {{"orange", {}, {"colour"}, {}}, {"Blood", {}, {"x"}, {}}});
  const Lexicon* const both[] = {&one, &two};
  const auto slots = slots_of(both, "blood orange");
  EXPECT_EQ(found(slots, "fruit"), (Texts{"Orange"}));
  EXPECT_EQ(found(slots, "colour"), (Texts{"orange"}));
}

TEST(Lexicon, OfPunctuationAloneFindsNothing) {
  const Lexicon lexicon("l", "L", {{"...", {}, {}, {}}, {"?", {"a"}, {}, {}}});
  EXPECT_EQ(slots_of(lexicon, "... ? !"), json::object());
  EXPECT_EQ(found(slots_of(lexicon, "a"), "L"), (Texts{"?"}));
}

TEST(Lexicon, GivesTheLongestAndFirstHitsUpToTheLimit) {
  std::vector<Entry> entries = namesakes(300);
  entries.push_back({"far away", {}, {}, {}});
  const Lexicon lexicon("l", "L", std::move(entries));
  const Lexicon* const all[] = {&lexicon};
  const auto hits = lexicon::find_keyphrases(repeated("x ", 1990) + "far away", all, 200);
  ASSERT_EQ(hits.size(), 200U);
  EXPECT_EQ(hits.back().entry->main_keyphrase, "far away") << "two words";
  for (std::size_t i = 0; i + 1 < hits.size(); ++i) {
    EXPECT_EQ(hits[i].begin, 0U) << "the first x fills the rest";
    EXPECT_EQ(hits[i].count, 1990);
  }
}

// Each entry costs the same, however many entries share its phrase. Otherwise this test takes some
// hundred times as long as the whole file.
TEST(Lexicon, TakesAnyNumberOfEntriesOfOnePhrase) {
  const Lexicon lexicon("l", "L", namesakes(200'000));
  const Lexicon* const all[] = {&lexicon};
  EXPECT_EQ(lexicon::find_keyphrases("x", all, 1'000'000).size(), 200'000U);
}

// Prints the figure without checking it: tests run in debug builds and beside others.
TEST(LexiconSpeed, FindsAHundredThousandEntriesInAMessage) {
  std::vector<Entry> entries;
  constexpr int count = 100'000;
  for (int i = 0; i < count; ++i) {
    const std::string number = std::to_string(i * 7919 % count);
    entries.push_back({"street " + number + " north", {"str" + number}, {"street"}, {}});
  }
  const Lexicon lexicon("l", "Streets", std::move(entries));
  std::string text = "I would like to go to street 4711 north and then maybe to Str815, please. ";
  while (text.size() < 200) text += "the street is long, ";
  text.resize(200);
  const Lexicon* const all[] = {&lexicon};
  std::vector<double> took;
  for (int i = 0; i < 500; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto slots = slots_of(all, text);
    took.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
            .count());
    ASSERT_EQ(slots["street"].size(), 2U);
  }
  std::nth_element(took.begin(), took.begin() + 250, took.end());
  std::cout << "median of a search among 100,000 entries: " << took[250] << " us\n";
}

TEST(LexiconInFlows, FillsTheSlotsOfEachInput) {
  Conversation talk(
      "- say: \"{{input.slots.city[0].keyphrase}}\"\n- wait: true\n"
      "- say: \"{{input.slots.city[0].keyphrase}}\"");
  talk.flow = named_flow("Main2",
                         "  - say: \"{{input.slots.city[0].keyphrase}}\"\n  - wait: true\n"
                         "  - say: \"{{input.slots.city[0].keyphrase}}\"",
                         {"Cities", "Gone"});
  talk.library.lexicons["Cities"] = std::make_shared<const Lexicon>(
      "l1", "Cities", std::vector<Entry>{{"Paris", {}, {"city"}, {}}, {"Rome", {}, {"city"}, {}}});
  EXPECT_EQ(texts(talk.say("to paris")), (Texts{"Paris"}));
  EXPECT_EQ(texts(talk.say("or ROME")), (Texts{"Rome"}));
}

// A session whose Flow has a lexicon of entries that share a phrase.
struct Crowd : Conversation {
  explicit Crowd(const std::string& nodes, const json& data = nullptr)
      : Conversation("- stop: true") {
    flow = named_flow("Crowd", nodes, {"L"});
    library.lexicons["L"] = std::make_shared<const Lexicon>("l", "L", namesakes(300, data));
  }
};

TEST(LexiconInFlows, BoundsTheHitsOfAMessage) {
  Crowd talk("  - say: \"{{input.slots.L.length}}\"\n");
  const auto effects = talk.say(repeated("x ", 2000));
  EXPECT_EQ(texts(effects), (Texts{"200"}));
  ASSERT_TRUE(effects);
  EXPECT_EQ(effects->log,
            (Texts{"the Flow 'Crowd': input.slots is full; it holds at most 200 hits and 262144 "
                   "bytes, and further hits are left out"}));
}

TEST(LexiconInFlows, BoundsTheBytesOfSlots) {
  const std::string nodes = "  - say: \"{{input.slots.L.length}}\"\n  - sleep: 1s\n";
  Crowd talk(nodes, std::string(100'000, 'd'));
  EXPECT_EQ(texts(talk.say("x")), (Texts{"2"}));
  ASSERT_TRUE(talk.session.busy());
  EXPECT_LT(talk.session.execution->state.dump().size(), talk.limits.slot_bytes);
}

TEST(LexiconInFlows, CountsValuesThatNodesPutIntoSlots) {
  Conversation talk(
      "- {id: again, regexSlotFiller: {pattern: x, slot: s}}\n"
      "- {if: context.n != 20, then: [{addToContext: {n: \"{{(context.n || 0) + 1}}\"}}, "
      "{goTo: again}]}\n- say: \"{{input.slots.s.length}}\"");
  EXPECT_EQ(texts(talk.say(repeated("x ", 20))), (Texts{"200"}));
}

// Outer enters Inner. Each of the two Flows has a lexicon that fills `city`.
struct TwoFlows : Conversation {
  explicit TwoFlows(const json& before, const json& inside, const json& behind = json::array())
      : Conversation("- stop: true") {
    json outer = before;
    outer.push_back({{"executeFlow", "Inner"}});
    outer.insert(outer.end(), behind.begin(), behind.end());
    flow = compiled("Outer", {"L1"}, outer);
    library.flows["Inner"] = {compiled("Inner", {"L2", "L1"}, inside)};
    library.lexicons["L1"] = std::make_shared<const Lexicon>(
        "l1", "L1", std::vector<Entry>{{"Paris", {}, {"city"}, {}}, {"York", {}, {"city"}, {}}});
    library.lexicons["L2"] = std::make_shared<const Lexicon>(
        "l2", "L2",
        std::vector<Entry>{{"Berlin", {}, {"city"}, {}}, {"New York", {}, {"city"}, {}}});
  }

  static std::shared_ptr<const Flow> compiled(const char* name, const Texts& lexicons,
                                              const json& nodes) {
    auto made = Flow::compile({{"name", name}, {"lexicons", lexicons}, {"nodes", nodes}});
    if (!made) ADD_FAILURE() << to_string(made.error());
    return made ? *made : nullptr;
  }
};

const json say_cities = {{"say", "{{input.slots.city.map(hit => hit.keyphrase).join()}}"}};
const json wait = {{"wait", true}};

TEST(LexiconInFlows, AddsHitsOfAnEnteredFlowsLexicons) {
  const json once = json::array({say_cities});
  TwoFlows talk(once, once, once);
  EXPECT_EQ(texts(talk.say("from Paris to Berlin")),
            (Texts{"Paris", "Paris,Berlin", "Paris,Berlin"}));
}

TEST(LexiconInFlows, SearchesEachLexiconOnce) {
  TwoFlows talk(json::array(), json::array({say_cities}),
                json::array({{{"executeFlow", "Inner"}}}));
  EXPECT_EQ(texts(talk.say("Paris, Berlin")), (Texts{"Paris,Berlin", "Paris,Berlin"}));
}

TEST(LexiconInFlows, PutsTheWaitingFlowsHitsFirst) {
  TwoFlows talk(json::array(), json::array({wait, say_cities}));
  talk.library.flows["Inner"] = {
      TwoFlows::compiled("Inner", {"L2"}, json::array({wait, say_cities}))};
  EXPECT_EQ(texts(talk.say("x")), (Texts{}));
  EXPECT_EQ(texts(talk.say("from Paris to Berlin")), (Texts{"Berlin,Paris"}));
}

TEST(LexiconInFlows, LetsTheLongerPhraseOfTwoFlowsWin) {
  TwoFlows talk(json::array(), json::array({wait, say_cities}));
  EXPECT_EQ(texts(talk.say("x")), (Texts{}));
  EXPECT_EQ(texts(talk.say("to New York")), (Texts{"New York"}));
}

TEST(LexiconInFlows, KeepsHitsFromBeforeACall) {
  const json call = {{"httpRequest", {{"url", "http://e.example/"}}}};
  TwoFlows talk(json::array({say_cities, call}), json::array({say_cities}));
  EXPECT_EQ(texts(talk.say("from Paris to Berlin")), (Texts{"Paris"}));
  ASSERT_TRUE(talk.session.busy());
  EXPECT_EQ(texts(talk.answer_call({})), (Texts{"Paris,Berlin"}));
}

}  // namespace
}  // namespace conversed::flows
