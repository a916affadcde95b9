// Keyphrases in what people write, and how fast they are found.
#include "flows/lexicon/lexicon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>

#include "flows/lexicon/words.h"
#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using lexicon::Entry;
using lexicon::Lexicon;
using lexicon::phrase_of;
using nlohmann::json;

Lexicon cities() {
  return Lexicon("l1", "Cities",
                 {{"Paris", {"paree", "city of light"}, {"city"}, {{"country", "FR"}}},
                  {"New York", {"NYC"}, {"city"}, {}},
                  {"York", {}, {"city"}, {}},
                  {"Köln", {"Cologne"}, {"city", "german"}, {}}});
}

json slots_of(const Lexicon& lexicon, std::string_view text) {
  const Lexicon* const all[] = {&lexicon};
  return lexicon::find_slots(text, all);
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
  const auto words = lexicon::words_of("😀 a, b", 10);
  ASSERT_EQ(words.size(), 3U);
  EXPECT_EQ(words[1].begin, 3U);
  EXPECT_EQ(words[1].end, 4U);
  EXPECT_FALSE(words[1].new_clause);
  EXPECT_TRUE(words[2].new_clause);
}

TEST(Words, TakeAnyBytes) {
  EXPECT_EQ(phrase_of("a\xFF\xC0 b"), phrase_of("a\xEF\xBF\xBD\xEF\xBF\xBD b"));
  EXPECT_EQ(lexicon::words_of("a b c d", 2).size(), 2U);
}

TEST(Lexicon, GivesWhatTheDecisionsSayOfASlot) {
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
  EXPECT_EQ(slots["city"][1]["neg"], false) << "the negation is spent on Paris";
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
  const auto slots = lexicon::find_slots("blood orange", both);
  EXPECT_EQ(found(slots, "fruit"), (Texts{"Orange"}));
  EXPECT_EQ(found(slots, "colour"), (Texts{"orange"}));
}

TEST(Lexicon, OfPunctuationAloneFindsNothing) {
  const Lexicon lexicon("l", "L", {{"...", {}, {}, {}}, {"?", {"a"}, {}, {}}});
  EXPECT_EQ(slots_of(lexicon, "... ? !"), json::object());
  EXPECT_EQ(found(slots_of(lexicon, "a"), "L"), (Texts{"?"}));
}

// The figure is printed, not judged: tests run in debug builds and beside others.
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
    const auto slots = lexicon::find_slots(text, all);
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

}  // namespace
}  // namespace conversed::flows
