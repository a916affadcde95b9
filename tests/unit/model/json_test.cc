#include "store/model/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

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

TEST(ParseJson, TextBesideTheValueIsRefused) {
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

TEST(ParseJson, ATextThatWouldTakeTooMuchMemoryIsTooLarge) {
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

TEST(ParseJson, NamesTheByteThatIsWrong) {
  EXPECT_EQ(parse_json(R"({"a":x})").error().message, "no valid JSON at byte 6");
  EXPECT_EQ(parse_json("[1,").error().message, "no valid JSON at byte 4");
}

TEST(JsonText, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(json_text(nlohmann::json({{"a", "x\xFFy"}})), "{\"a\":\"x\xEF\xBF\xBDy\"}");
}

}  // namespace
}  // namespace conversed::model
