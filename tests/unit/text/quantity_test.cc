#include "store/text/quantity.h"

#include <gtest/gtest.h>

#include <regex>
#include <string>

using namespace std::chrono_literals;

namespace conversed::text {
namespace {

TEST(Whole, TakesDigitsOnly) {
  EXPECT_EQ(parse_whole("0"), 0U);
  EXPECT_EQ(parse_whole("8080"), 8080U);
  EXPECT_EQ(parse_whole("18446744073709551615"), 18446744073709551615U);
  for (const char* bad : {"", " 1", "1 ", "+1", "-1", "010", "0x10", "1e3", "1_000", "1.0",
                          "eighty", "18446744073709551616"}) {
    EXPECT_EQ(parse_whole(bad), std::nullopt) << bad;
  }
}

TEST(DurationText, ReadsEachUnit) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("10s"), 10s);
  EXPECT_EQ(parse_duration("5m"), 5min);
  EXPECT_EQ(parse_duration("2h"), 2h);
  EXPECT_EQ(parse_duration("3d"), 72h);
  EXPECT_EQ(parse_duration("0s"), 0ms);
}

TEST(DurationText, RefusesWhatIsNotOneNumberAndOneUnit) {
  for (const char* bad : {"", "10", "s", "10 s", "1.5h", "-1s", "1h30m", "10S", "10sec", "01s"}) {
    EXPECT_EQ(parse_duration(bad), std::nullopt) << bad;
  }
}

TEST(DurationText, ReadsEachTextOfItsExpression) {
  const std::regex expression{std::string(duration_expression)};
  for (const char* unit : {"ms", "s", "m", "h", "d"}) {
    for (const char* number : {"0", "7", "10", "9999999999"}) {
      const std::string text = std::string(number) + unit;
      EXPECT_TRUE(std::regex_match(text, expression)) << text;
      EXPECT_NE(parse_duration(text), std::nullopt) << text;
    }
  }
  for (const char* bad : {"", "10", "00s", "000006d", "01s", "10000000000d", "1.5h", "-1s"}) {
    EXPECT_FALSE(std::regex_match(bad, expression)) << bad;
  }
}

TEST(DurationText, OverflowIsRefusedNotWrapped) {
  EXPECT_NE(parse_duration("9223372036854775807ms"), std::nullopt);
  EXPECT_EQ(parse_duration("9223372036854775808ms"), std::nullopt);
  EXPECT_NE(parse_duration("106751991167d"), std::nullopt);
  EXPECT_EQ(parse_duration("106751991168d"), std::nullopt);
}

TEST(DurationText, IsWrittenInTheLargestUnitThatDividesIt) {
  EXPECT_EQ(duration_text(0ms), "0s");
  EXPECT_EQ(duration_text(1500ms), "1500ms");
  EXPECT_EQ(duration_text(90s), "90s");
  EXPECT_EQ(duration_text(120s), "2m");
  EXPECT_EQ(duration_text(720h), "30d");
}

TEST(SizeText, ReadsBytesAndBinaryUnits) {
  EXPECT_EQ(parse_size("65536"), 65536U);
  EXPECT_EQ(parse_size("64KiB"), 65536U);
  EXPECT_EQ(parse_size("1MiB"), 1048576U);
  EXPECT_EQ(parse_size("2GiB"), 2147483648U);
  for (const char* bad : {"64KB", "64k", "64 KiB", "-1", "1.5MiB", "KiB", "17179869184GiB"}) {
    EXPECT_EQ(parse_size(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_size("17179869183GiB"), 17179869183ULL << 30U);
}

TEST(SizeText, IsWrittenInTheLargestUnitThatDividesIt) {
  EXPECT_EQ(size_text(0), "0");
  EXPECT_EQ(size_text(1000), "1000");
  EXPECT_EQ(size_text(64 * 1024), "64KiB");
  EXPECT_EQ(size_text(1024 * 1024), "1MiB");
}

}  // namespace
}  // namespace conversed::text
