#include "store/model/receipt_text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace conversed::model {
namespace {

using nlohmann::json;

std::string full_step() {
  ReceiptText step;
  step.add("what", "turn");
  {
    auto accepted = step.object("accepted");
    accepted.add("text", "says \"hi\" \\ {[<:");
    auto position = accepted.list("position");
    position.add(std::int64_t{1});
    position.add(std::numeric_limits<std::int64_t>::min());
    position.add(std::numeric_limits<std::int64_t>::max());
  }
  step.add("us", 7);
  step.add("recovery", true);
  step.add("collected", false);
  const std::vector<std::string> nodes{"nodes[0]", "nodes[0].then[1]", "",
                                       "grüße[0]", "grüße[1]",         "nodes[0]"};
  step.add_texts("nodes", nodes);
  {
    auto changes = step.list("changes");
    auto change = changes.object();
    change.add("path", "context.a");
    change.add_json("value", R"({"a":["]}",null,1.5]})");
  }
  step.add("reason", std::string("no\0t printable\x1f\xff", 16));
  step.add_object("recorded", [](ReceiptText& recorded) { recorded.add_members("!\"x\x1f"); });
  step.add_object("result", [](ReceiptText&) {});
  return std::move(step).finished();
}

json full_json() {
  return {
      {"what", "turn"},
      {"accepted",
       {{"text", "says \"hi\" \\ {[<:"},
        {"position",
         {1, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}}}},
      {"us", 7},
      {"recovery", true},
      {"collected", false},
      {"nodes", {"nodes[0]", "nodes[0].then[1]", "", "grüße[0]", "grüße[1]", "nodes[0]"}},
      {"changes", {{{"path", "context.a"}, {"value", {{"a", {"]}", nullptr, 1.5}}}}}}},
      {"reason", std::string("no\0t printable\x1f\xef\xbf\xbd", 18)},
      {"recorded", {{"what", "x"}}}};
}

TEST(ReceiptTextTest, IsReadAsItWasWritten) {
  const auto text = full_step();
  EXPECT_EQ(read_receipt_text(text), full_json());
  EXPECT_LT(text.size(), full_json().dump().size() * 3 / 4);
  EXPECT_EQ(read_receipt_text(""), json::object());
}

TEST(ReceiptTextTest, NamesKeepTheirPlaces) {
  // Of a step that an earlier program stored.
  const std::string stored =
      "!\"turn\x1f.{$\"inject\x1f\"1795927426844)[1,7,122,]}/2\"1795927426865#10=\"Eight\x1f>1"
      "?[\"nodes[0]\x1f<&1]\x1f]@9E[{G\"context.count\x1f-8H:5\x1fJ8K:4\x1f}]L[5,1,]";
  EXPECT_EQ(
      read_receipt_text(stored),
      (json{{"what", "turn"},
            {"accepted", {{"type", "inject"}, {"at", 1795927426844}, {"position", {1, 7, 122}}}},
            {"behind", 2},
            {"at", 1795927426865},
            {"us", 10},
            {"flow", "Eight"},
            {"version", 1},
            {"nodes", {"nodes[0]", "nodes[1]"}},
            {"nodesRun", 9},
            {"changes",
             {{{"path", "context.count"},
               {"bytes", 8},
               {"value", 5},
               {"bytesBefore", 8},
               {"before", 4}}}},
            {"outputs", {5, 1}}}));
  EXPECT_EQ(read_receipt_text("l1m2"), (json{{"since", 1}, {receipt_names.back(), 2}}));
  EXPECT_EQ(receipt_names.back(), "done");
}

// Texts of printable ASCII are kept as they are, others as JSON. Each character stands at each of
// the places of a group of eight.
TEST(ReceiptTextTest, AnyCharacterAtAnyPlaceIsReadAsItWasWritten) {
  for (int c = 1; c < 0x80; ++c) {
    for (std::size_t place = 0; place < 17; ++place) {
      std::string value(17, '~');
      value[place] = static_cast<char>(c);
      ReceiptText text;
      text.add("what", value);
      const auto written = std::move(text).finished();
      EXPECT_EQ(written[1] == '"', c >= ' ' && c <= '~') << c;
      EXPECT_EQ(read_receipt_text(written), nlohmann::json({{"what", value}})) << c;
    }
  }
}

// The reader discards a damaged text, or reads only some of its members. No text makes the reader
// crash or hang.
TEST(ReceiptTextTest, DamagedTextIsDiscarded) {
  const auto whole = full_step();
  for (std::size_t end = 1; end < whole.size(); ++end) {
    (void)read_receipt_text(whole.substr(0, end));
  }
  for (const std::string damaged :
       {"!", "!\"turn", "\x7f", "0", "!x\x1f", "!:\x1f", "!:{\x1f", "#-", "#99999999999999999999",
        "!{", "![", "![<\x1f]", "![<\"x\x1f]", "!}", "}", "!\"a\x1f}", "!\"a\xff\x1f",
        "?[\"ab\x1f<\"\xff\x1f]"}) {
    EXPECT_TRUE(read_receipt_text(damaged).is_discarded()) << damaged;
  }
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "!{";
  EXPECT_TRUE(read_receipt_text(deep).is_discarded());
  std::mt19937 random(7);
  for (int i = 0; i < 10'000; ++i) {
    auto changed = whole;
    changed[random() % changed.size()] = static_cast<char>(random());
    (void)read_receipt_text(changed);
  }
}

}  // namespace
}  // namespace conversed::model
