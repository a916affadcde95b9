#include "store/model/json.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "store/model/text_writer.h"
#include "tests/support/fuzzing.h"

namespace conversed::model {
namespace {

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(ParseJson, DepthIsBoundedAndTheOutermostCountsAsOne) {
  EXPECT_TRUE(parse_json(nested(max_json_depth)));
  EXPECT_FALSE(parse_json(nested(max_json_depth + 1)));
  EXPECT_FALSE(parse_json(std::string(1'000'000, '[')));
  EXPECT_FALSE(parse_json(nested(2000)));
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
  EXPECT_FALSE(parse_json({}));
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

// Texts of up to 16 KiB go to simdjson first. nlohmann's parser takes the same text with 16 KiB of
// blanks behind it.
TEST(ParseJson, ShortTextsMeanWhatLongOnesDo) {
  const std::string blanks(std::size_t{16} << 10, ' ');
  tests::Mutator mutator(
      {{"values", R"({"a":[1,-2,0.5,1e3,-1E-7,true,false,null,"x"],"b":{},"c":[[],{"d":""}]})"},
       {"numbers",
        "[0,-0,-0.0,9223372036854775807,-9223372036854775808,18446744073709551615,"
        "18446744073709551616,-9223372036854775809,1.7976931348623157e308,5e-324,1e-400,"
        "1e400,123456789012345678901234567890,0.1,2.2250738585072011e-308]"},
       {"texts", R"(["\u0000","\ud83d\ude00","\ud83d","\"\\\/\b\f\n\r\t","é😀","{\u0061:1}"])"},
       {"names", R"({"a":1,"\u0061":2,"":3,"b":{"a":1,"a":2}})"}},
      {"{",    "}",       "[",
       "]",    ",",       ":",
       "\"",   "\\u",     "1",
       "-",    "e5",      ".",
       "null", "true",    " ",
       "\n",   "\\udc00", "\\ud800\\u0041",
       "\x0C", "\x1A",    "\xEF\xBB\xBF",
       "\xC3", "\x01",    "[[[[[[[["});
  for (int round = 0; round < 3000; ++round) {
    const auto text = mutator.mutate(mutator.entry().text);
    const auto read = parse_json(text, 4, 2000);
    const auto expected = parse_json(text + blanks, 4, 2000);
    ASSERT_EQ(read.has_value(), expected.has_value()) << text;
    if (!read) {
      ASSERT_EQ(read.error().code, expected.error().code) << text;
      continue;
    }
    ASSERT_EQ(*read, *expected) << text;
    ASSERT_EQ(read->dump(), expected->dump()) << text;
  }
}

// A text of these characters, which need no escape, an escape, or the care for bytes that are not
// UTF-8.
std::string any_text(std::mt19937& random) {
  static const std::vector<std::string> pieces{"a",  " ", "~",    "\x7f", "\"",
                                               "\\", "/", "\n",   "\x1f", std::string(1, '\0'),
                                               "ü",  "😀", "\xff", "\xc3", "\x80"};
  const bool is_simple = random() % 2 == 0;
  std::string text;
  for (auto left = random() % 30; left > 0; --left)
    text += pieces[random() % (is_simple ? 3 : pieces.size())];
  return text;
}

nlohmann::json any_value(std::mt19937& random, int depth) {
  switch (random() % (depth > 4 ? 7U : 9U)) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return static_cast<std::int64_t>(random()) - (std::int64_t{1} << 31);
    case 3:
      return std::numeric_limits<std::uint64_t>::max() - random() % 2;
    case 4:
      return std::numeric_limits<std::int64_t>::min() + static_cast<std::int64_t>(random() % 2);
    case 5:
      return static_cast<double>(random()) / 7 * (random() % 3 == 0 ? 1e300 : 1);
    case 6:
      return any_text(random);
    case 7: {
      auto list = nlohmann::json::array();
      for (auto left = random() % 4; left > 0; --left) list.push_back(any_value(random, depth + 1));
      return list;
    }
    default: {
      auto object = nlohmann::json::object();
      for (auto left = random() % 4; left > 0; --left) {
        object[any_text(random)] = any_value(random, depth + 1);
      }
      return object;
    }
  }
}

std::string by_nlohmann(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

TEST(JsonText, AnyValueIsWrittenAsNlohmannWritesIt) {
  std::mt19937 random(11);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = any_value(random, 0);
    EXPECT_EQ(json_text(value), by_nlohmann(value));
    const auto text = any_text(random);
    std::string quoted = "before ";
    append_quoted(quoted, text);
    EXPECT_EQ(quoted, "before " + by_nlohmann(text));
  }
  for (const auto& value :
       {nlohmann::json(std::numeric_limits<double>::infinity()),
        nlohmann::json(std::numeric_limits<double>::quiet_NaN()), nlohmann::json(-0.0),
        nlohmann::json::binary({1, 2}), nlohmann::json(nlohmann::json::value_t::discarded)}) {
    EXPECT_EQ(json_text(nlohmann::json({{"a", value}})), by_nlohmann({{"a", value}}));
  }
  EXPECT_EQ(json_text(nlohmann::json(std::string(100'000, 'x'))).size(), 100'002U);
  EXPECT_EQ(json_text(nlohmann::json("short")), "\"short\"");
}

TEST(JsonText, AnyCharacterAtAnyPlaceIsWrittenAsNlohmannWritesIt) {
  for (int c = 0; c < 256; ++c) {
    for (std::size_t size = 1; size <= 17; ++size) {
      for (std::size_t place = 0; place < size; ++place) {
        std::string text(size, 'x');
        text[place] = static_cast<char>(c);
        EXPECT_EQ(json_text(nlohmann::json(text)), by_nlohmann(text)) << c << " at " << place;
      }
    }
  }
}

TEST(TextWriter, RoomGrowsAndIsKept) {
  TextWriter writer(4);
  EXPECT_EQ(writer.view(), "");
  std::string expected;
  for (int i = 0; i < 1000; ++i) {
    writer.add('a');
    writer.add_number(std::numeric_limits<std::int64_t>::min());
    writer.add(std::string(static_cast<std::size_t>(i), 'b'));
    expected += "a-9223372036854775808" + std::string(static_cast<std::size_t>(i), 'b');
  }
  EXPECT_EQ(writer.view(), expected);
  writer.cut(1);
  writer.add("bc");
  EXPECT_EQ(writer.finished(), "abc");
  EXPECT_EQ(writer.size(), 0U);
  writer.add(std::string(100, 'x'));
  writer.clear(10);
  writer.add_number(7U);
  EXPECT_EQ(writer.finished(), "7");
}

TEST(JsonText, ReplacesBytesThatAreNoUtf8) {
  EXPECT_EQ(json_text(nlohmann::json({{"a", "x\xFFy"}})), "{\"a\":\"x\xEF\xBF\xBDy\"}");
}

}  // namespace
}  // namespace conversed::model
