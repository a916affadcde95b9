// Numbers in words.
#include "flows/words/spelled_numbers.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace conversed::flows {
namespace {

std::string number(const std::string& locale, const std::string& text) {
  const auto numbers = SpelledNumbers::find(locale);
  if (numbers == nullptr) return "unknown language";
  return numbers->decimal(answer_words(text)).value_or("none");
}

TEST(SpelledNumbers, HyphensBlanksCaseAndAccentsDoNotMatter) {
  EXPECT_EQ(number("en", "two"), "2");
  EXPECT_EQ(number("en", "twenty-one"), "21");
  EXPECT_EQ(number("en", " Twenty One!"), "21");
  EXPECT_EQ(number("en", "one hundred five"), "105");
  EXPECT_EQ(number("en", "one hundred and five"), "105");
  EXPECT_EQ(number("en", "a hundred"), "100");
  EXPECT_EQ(number("en", "one thousand and five"), "1005");
  EXPECT_EQ(number("en", "two million three hundred thousand"), "2300000");
  EXPECT_EQ(number("en", "nine hundred and ninety-nine billion and one"), "999000000001");
  EXPECT_EQ(number("de", "einundzwanzig"), "21");
  EXPECT_EQ(number("de", "Ein und zwanzig"), "21");
  EXPECT_EQ(number("de", "fünf"), "5");
  EXPECT_EQ(number("de", "fuenfunddreissig"), "35");
  EXPECT_EQ(number("de", "tausendfünf"), "1005");
  EXPECT_EQ(number("de", "zwei Millionen dreihunderttausend"), "2300000");
}

TEST(SpelledNumbers, HaveSignsAndDigitsBehindThePoint) {
  EXPECT_EQ(number("en", "minus two point five"), "-2.5");
  EXPECT_EQ(number("en", "zero point two five"), "0.25");
  EXPECT_EQ(number("de", "minus zwei Komma null fünf"), "-2.05");
  EXPECT_EQ(number("fr", "cinq virgule deux"), "5.2");
  EXPECT_EQ(number("en", "two point twenty"), "none");
  EXPECT_EQ(number("en", "two point"), "none");
  EXPECT_EQ(number("en", "point five"), "none");
  EXPECT_EQ(number("en", "minus minus two"), "none");
  EXPECT_EQ(number("en", "zero point " + std::string(16 * 4, ' ')), "none");
}

TEST(SpelledNumbers, OtherTextsAreNone) {
  for (const std::string text :
       {"two pizzas", "two three", "one one", "twenty twenty", "third", "twenty-first", "a",
        "nineteen eighty-four", "infinity", "not a number", "2", "2 hundred", "hundred", "thousand",
        "one thousand thousand", "one hundred million billion", "-", ""}) {
    EXPECT_EQ(number("en", text), "none") << text;
  }
}

TEST(SpelledNumbers, SpellingsOfManyLanguagesComeBack) {
  const std::vector<std::pair<std::string, std::string>> all{
      {"ar", "واحد وعشرون"},   {"cs", "dvacet jedna"},
      {"da", "enogtyve"},      {"es", "veintiuno"},
      {"fr", "vingt et un"},   {"it", "ventuno"},
      {"ja", "二十一"},        {"nb", "tjueen"},
      {"nl", "eenentwintig"},  {"pl", "dwadzieścia jeden"},
      {"pt-BR", "vinte e um"}, {"ru", "двадцать один"},
      {"sv", "tjugoett"},      {"tr", "yirmi bir"},
      {"zh_Hans_CN", "二十一"}};
  for (const auto& [locale, text] : all) EXPECT_EQ(number(locale, text), "21") << locale;
  EXPECT_EQ(number("ru", "две тысячи"), "2000");
  EXPECT_EQ(number("pt", "mil e um"), "1001");
}

TEST(SpelledNumbers, LanguagesThatIcuDoesNotSpellHaveNone) {
  for (const std::string locale : {"", "xx", "Deutsch", "en us", "-", "_", "\xff"}) {
    EXPECT_EQ(SpelledNumbers::find(locale), nullptr) << locale;
  }
  EXPECT_EQ(SpelledNumbers::find("en-" + std::string(10'000, 'x')), nullptr);
}

TEST(SpelledNumbers, NamesOfOneLanguageShareItsNumbers) {
  const auto english = SpelledNumbers::find("en");
  EXPECT_EQ(SpelledNumbers::find("EN_us"), english);
  for (char last = 'a'; last <= 'z'; ++last) {
    EXPECT_EQ(SpelledNumbers::find(std::string("en-US-x-") + last), english);
    EXPECT_EQ(SpelledNumbers::find(std::string("af-x-") + last), SpelledNumbers::find("af"));
    EXPECT_EQ(SpelledNumbers::find(std::string("aq") + last), nullptr);
  }
  EXPECT_EQ(SpelledNumbers::find("en"), english);
  EXPECT_NE(SpelledNumbers::find("de-CH"), SpelledNumbers::find("de"));  // it has its own rules
}

TEST(SpelledNumbers, LongTextsAreNoNumbers) {
  std::string text;
  while (text.size() < std::size_t{64} << 10) text += "one hundred ";
  EXPECT_EQ(number("en", text), "none");
  EXPECT_EQ(number("en", "one" + std::string(200, ' ')), "none");
  std::string words;
  for (int i = 0; i < 31; ++i) words += "a ";
  EXPECT_TRUE(answer_words(words).empty());
  EXPECT_EQ(answer_words(words.substr(2)).size(), 30U);
}

// More languages than are kept, so that threads make, read and drop them at the same time.
TEST(SpelledNumbers, ThreadsReadTheSameNumbers) {
  const std::vector<std::string> locales{"en", "de", "fr", "es", "it", "nl", "sv", "da", "pt",
                                         "nb", "tr", "cs", "sk", "hu", "et", "sl", "hr", "id"};
  std::vector<std::string> found(3);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : found) {
      threads.emplace_back([&mine, &locales] {
        for (const auto& locale : locales) mine += number(locale, "zero") + number("en", "ten");
      });
    }
  }
  EXPECT_NE(found[0].find("010"), std::string::npos);
  for (const auto& each : found) EXPECT_EQ(each, found[0]);
}

}  // namespace
}  // namespace conversed::flows
