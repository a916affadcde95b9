#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "daemon/ctl/fields.h"
#include "daemon/ctl/output.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

TEST(Table, AlignsTextsAtTheLeftAndNumbersAtTheRight) {
  Table table({"NAME", "COUNT", "REASON"});
  table.add({"a", std::int64_t{7}, "none"});
  table.add({"Größe", std::int64_t{1234567}, ""});
  EXPECT_EQ(table.to_text(),
            "NAME     COUNT  REASON\n"
            "a            7  none\n"
            "Größe  1234567  -");
}

TEST(Table, ACellStaysInItsLine) {
  Table table({"NAME"});
  table.add({"a\n\x1b[31mb"});
  EXPECT_EQ(table.to_text(), "NAME\na\\n\\u001b[31mb");
}

TEST(Fields, ReadsWhatIsThere) {
  const json answer = {{"name", "n"},
                       {"count", 3},
                       {"on", true},
                       {"at", 1795356239},
                       {"none", nullptr},
                       {"roles", {"a", "b"}},
                       {"items", {{{"name", "first"}}}}};
  const Fields fields(answer);
  EXPECT_EQ(fields.text("name"), "n");
  EXPECT_EQ(fields.number("count"), 3);
  EXPECT_TRUE(fields.flag("on"));
  EXPECT_EQ(fields.time("at"), "2026-11-22 14:03:59");
  EXPECT_EQ(fields.time("none"), "-");
  EXPECT_FALSE(fields.has("none"));
  EXPECT_EQ(fields.text_if_any("missing"), "");
  EXPECT_EQ(fields.texts("roles"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(fields.items().at(0).text("name"), "first");
}

TEST(Fields, WhatIsMissingOrOfAnotherTypeIsABadAnswerThatNamesIt) {
  const json answer = {{"name", 5}, {"items", {1}}, {"next", "x"}};
  const Fields fields(answer);
  EXPECT_THROW((void)fields.number("missing"), BadAnswer);
  EXPECT_THROW((void)fields.items(), BadAnswer);
  EXPECT_THROW((void)fields.time("next"), BadAnswer);
  EXPECT_THROW((void)fields.object("name"), BadAnswer);
  EXPECT_THROW((void)Fields{answer["items"]}, BadAnswer);
  try {
    (void)fields.text("name");
    ADD_FAILURE();
  } catch (const BadAnswer& bad) {
    EXPECT_NE(std::string(bad.what()).find("no text 'name'"), std::string::npos) << bad.what();
  }
}

}  // namespace
}  // namespace conversed::ctl
