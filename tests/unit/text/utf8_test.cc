#include "store/text/utf8.h"

#include <gtest/gtest.h>

namespace conversed::text {
namespace {

// Unicode 15, table 3-7: the first and the last sequence of each of its rows.
TEST(Utf8, WellFormedTextsAreTaken) {
  for (const char* good : {"",
                           "abc",
                           "\x7F",
                           "\xC2\x80",
                           "\xDF\xBF",
                           "\xE0\xA0\x80",
                           "\xE0\xBF\xBF",
                           "\xE1\x80\x80",
                           "\xEC\xBF\xBF",
                           "\xED\x80\x80",
                           "\xED\x9F\xBF",
                           "\xEE\x80\x80",
                           "\xEF\xBF\xBF",
                           "\xEF\xBF\xBD",
                           "\xF0\x90\x80\x80",
                           "\xF0\xBF\xBF\xBF",
                           "\xF1\x80\x80\x80",
                           "\xF3\xBF\xBF\xBF",
                           "\xF4\x80\x80\x80",
                           "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
}

TEST(Utf8, OverlongSurrogatesAndTruncatedAreRefused) {
  for (const char* bad :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC3", "\xC3(", "\xE0\x80\x80", "\xE0\x9F\xBF",
        "\xE2\x82", "\xE2\x82\x41", "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF", "\xF0\x9F\x98", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
    EXPECT_FALSE(is_utf8(std::string("a") + bad)) << bad;
  }
}

TEST(Utf8, SequenceLengthIsOfTheCharacterAtItsPlace) {
  const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xFF";
  EXPECT_EQ(sequence_length(text, 0), 1U);
  EXPECT_EQ(sequence_length(text, 1), 2U);
  EXPECT_EQ(sequence_length(text, 3), 3U);
  EXPECT_EQ(sequence_length(text, 6), 4U);
  EXPECT_EQ(sequence_length(text, 10), 0U);
  EXPECT_EQ(sequence_length(text, text.size()), 0U);
}

TEST(Utf8, CharactersAreCountedHoweverManyBytesTheyTake) {
  EXPECT_EQ(count_characters("Gr\u00f6\u00dfe"), 5U);
}

}  // namespace
}  // namespace conversed::text
