#include "store/model/json.h"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>

namespace conversed::model {
namespace {

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(ParseJson, DepthIsBoundedAndTheOutermostCountsAsOne) {
  EXPECT_TRUE(parse_json(nested(max_json_depth)));
  EXPECT_FALSE(parse_json(nested(max_json_depth + 1)));
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')));
  EXPECT_FALSE(parse_json(R"({"a":[{}]})", 2));
  EXPECT_TRUE(parse_json(R"({"a":[1]})", 2));
}

TEST(ParseJson, DuplicateNamesAreRefusedInOneObjectOnly) {
  EXPECT_FALSE(parse_json(R"({"a":1,"a":2})"));
  EXPECT_FALSE(parse_json(R"({"a":1,"\u0061":2})"));
  EXPECT_TRUE(parse_json(R"({"a":{"a":1},"b":{"a":2}})"));
}

TEST(ParseJson, OnlyWholeUnicodeIsTaken) {
  EXPECT_EQ(*parse_json(R"("\ud83d\ude00")"), "\xF0\x9F\x98\x80");
  EXPECT_FALSE(parse_json(R"("\ud83d")"));
  EXPECT_FALSE(parse_json(R"("\ude00")"));
  EXPECT_FALSE(parse_json("\"\xC3\""));
  EXPECT_FALSE(parse_json("\"\xED\xA0\x80\""));
  EXPECT_EQ(parse_json(R"("\u0000")")->get<std::string>(), std::string(1, '\0'));
}

TEST(ParseJson, NumbersStayInRange) {
  EXPECT_FALSE(parse_json("1e400"));
  EXPECT_FALSE(parse_json("-1e400"));
  EXPECT_EQ(*parse_json("1e-400"), 0.0);
  EXPECT_EQ(*parse_json("9223372036854775807"), 9223372036854775807LL);
  EXPECT_TRUE(parse_json("99999999999999999999")->is_number_float());
  EXPECT_FALSE(parse_json("NaN"));
  EXPECT_FALSE(parse_json("01"));
}

TEST(ParseJson, NothingBesideOneValueIsTaken) {
  for (const char* text : {"", " ", "{", "{} {}", "[1,]", "{\"a\":}", "//x\n1", "tru"}) {
    const auto parsed = parse_json(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Errc::invalid_argument);
  }
}

TEST(ParseJson, MembersAndElementsEndUpWhereTheyBelong) {
  const std::string text = R"({"a":[1,[2,{"b":null}],"x"],"c":{"d":{"e":true},"f":-1.5}})";
  EXPECT_EQ(parse_json(text)->dump(), text);
}

TEST(ParseJson, ANulByteDoesNotEndTheText) {
  for (const std::string& before : {std::string("{}"), std::string("{\"a\":"), std::string()}) {
    const auto parsed = parse_json(before + std::string(1, '\0') + "{}");
    ASSERT_FALSE(parsed) << before;
    EXPECT_EQ(parsed.error().code, Errc::invalid_argument);
  }
}

TEST(ParseJson, WhatWouldTakeTooMuchMemoryIsTooLarge) {
  constexpr std::size_t kib = 1024;
  std::string arrays = "[[]";
  for (int i = 0; i < 10'000; ++i) arrays += ",[]";
  arrays += ']';
  const auto parsed = parse_json(arrays, max_json_depth, 512 * kib);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, Errc::too_large);
  EXPECT_TRUE(parse_json(arrays, max_json_depth, 1024 * kib));
  const std::string text = '"' + std::string(600 * kib, 'x') + '"';
  EXPECT_FALSE(parse_json(text, max_json_depth, 512 * kib));
  EXPECT_FALSE(parse_json("{" + text + ":1}", max_json_depth, 512 * kib));
}

// What nlohmann's own parser takes of the text, which has no name twice.
nlohmann::json expected_of(const std::string& text) {
  return nlohmann::json::parse(text, nullptr, false);
}

// Changes, adds or removes up to four bytes.
std::string damaged(std::string text, std::mt19937& random) {
  constexpr std::string_view bytes =
      "{}[]\":,\\u0189dDcefE+-.tn \n\x80\xC3\xA9\xED\xA0\xF4\x90\xEF\x01";
  for (auto changes = random() % 5; changes > 0; --changes) {
    const char byte = bytes[random() % bytes.size()];
    const std::size_t at = random() % (text.size() + 1);
    const auto kind = random() % 3;
    if (kind == 0) text.insert(at, 1, byte);
    if (kind == 1) text.erase(at, 1);
    if (kind == 2 && at < text.size()) text[at] = byte;
  }
  return text;
}

TEST(ParseJson, TakesAndRefusesWhatNlohmannDoes) {
  const std::array<std::string, 6> samples{
      R"({"a":[1,[2,{"b":null}],"x"],"c":{"d":{"e":true},"f":-1.5}})",
      R"(["\ud83d\ude00\n\t\\\"\/é漢😀","\u0041\u00e9\u20ac"])",
      "[1e400,-0,0.0,-0.0,1E+5,2e-3,1e-400,4.9e-324,0.1,1.7976931348623157e308]",
      "[18446744073709551615,18446744073709551616,-9223372036854775808,-9223372036854775809]",
      " [ true , false , null ] ",
      "\xEF\xBB\xBF{}"};
  std::mt19937 random(1);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same texts in each run
  for (int i = 0; i < 8'000; ++i) {
    const std::string text = damaged(samples[random() % samples.size()], random);
    const auto expected = expected_of(text);
    const auto parsed = parse_json(text);
    const bool is_twice = !parsed && parsed.error().message.find("twice") != std::string::npos;
    if (is_twice) continue;
    ASSERT_EQ(parsed.has_value(), !expected.is_discarded()) << text;
    if (parsed) {
      ASSERT_EQ(*parsed, expected) << text;
      ASSERT_EQ(json_text(*parsed), expected.dump());
    }
  }
}

TEST(ParseJson, NamesTheByteThatIsWrong) {
  EXPECT_EQ(parse_json(R"({"a":x})").error().message, "no valid JSON at byte 6");
  EXPECT_EQ(parse_json("[1,").error().message, "no valid JSON at byte 4");
}

TEST(JsonText, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(json_text({{"a", "x\xFFy"}}), "{\"a\":\"x\xEF\xBF\xBDy\"}");
}

}  // namespace
}  // namespace conversed::model
