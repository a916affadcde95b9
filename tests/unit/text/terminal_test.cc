#include "store/text/terminal.h"

#include <gtest/gtest.h>

namespace conversed::text {
namespace {

TEST(Terminal, ShowsControlCharactersAsTheirEscapes) {
  EXPECT_EQ(shown("a\x1b[31m\x07z\x7f", Lines::one), "a\\u001b[31m\\u0007z\\u007f");
  EXPECT_EQ(shown("\xC2\x9B"
                  "31m",
                  Lines::many),
            "\\u009b31m");
}

TEST(Terminal, ShowsChangesOfDirectionAsTheirEscapes) {
  EXPECT_EQ(shown("a\u202Eb\u2066c\u2069\u2028", Lines::many), "a\\u202eb\\u2066c\\u2069\\u2028");
}

TEST(Terminal, LineEndsStayOnlyInTextsOfManyLines) {
  EXPECT_EQ(shown("a\n\tb\r", Lines::many), "a\n\tb\\u000d");
  EXPECT_EQ(shown("a\n\tb", Lines::one), "a\\n\\tb");
}

TEST(Terminal, LettersOfAllScriptsStayAsTheyAre) {
  const std::string text = "Größe שלום 你好 👩‍🚀 \xC2\xA0.";
  EXPECT_EQ(shown(text, Lines::one), text);
}

TEST(Terminal, BytesThatAreNoUtf8AreReplaced) {
  EXPECT_EQ(shown("a\x9b\xff\xE2\x80", Lines::one), "a\uFFFD\uFFFD\uFFFD\uFFFD");
}

TEST(Terminal, WideCharactersTakeTwoColumnsAndMarksNone) {
  EXPECT_EQ(width("Größe"), 5);
  EXPECT_EQ(width("Gro\u0308ße"), 5) << "a mark joins the letter before it";
  EXPECT_EQ(width("你好"), 4);
  EXPECT_EQ(width("한글"), 4);
  EXPECT_EQ(width("\u1112\u1161\u11AB"), 2) << "one syllable of three letters";
  EXPECT_EQ(width("👩"), 2);
  EXPECT_EQ(width("\xff"), 1);
  EXPECT_EQ(width(""), 0);
}

TEST(Terminal, AShortenedTextFitsAndEndsWithAnEllipsis) {
  EXPECT_EQ(shortened("abcdef", 6), "abcdef");
  EXPECT_EQ(shortened("abcdef", 5), "abcd…");
  EXPECT_EQ(shortened("你好吗", 6), "你好吗");
  EXPECT_EQ(shortened("你好吗", 5), "你好…");
  EXPECT_EQ(shortened("你好吗", 4), "你…") << "half of a character is not shown";
  EXPECT_EQ(shortened("ao\u0308bc", 3), "ao\u0308…") << "a letter keeps its mark";
  EXPECT_EQ(shortened("abc", 1), "…");
  EXPECT_EQ(shortened("abc", 0), "");
}

TEST(Quoted, CantDisturbATerminalOrALogLine) {
  EXPECT_EQ(in_quotes("a\nb\x1B\"\\"), R"("a\nb\u001b\"\\")");
  EXPECT_EQ(in_quotes(std::string(61, 'x')), "\"" + std::string(60, 'x') + "...\"");
  // Never cuts within a character.
  EXPECT_EQ(in_quotes(std::string(59, 'x') + "\u00e9"), "\"" + std::string(59, 'x') + "...\"");
}

}  // namespace
}  // namespace conversed::text
