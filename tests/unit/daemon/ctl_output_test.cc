#include <gtest/gtest.h>

#include <limits>
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

TEST(Fields, ReadsEachType) {
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

TEST(Fields, ATimeBeyondAllYearsIsShownAsItsNumber) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  constexpr auto least = std::numeric_limits<std::int64_t>::min();
  const json answer = {{"at", most}, {"all", {least, 0}}, {"far", 10'000'000'000'000'000}};
  const Fields fields(answer);
  EXPECT_EQ(fields.time("at"), std::to_string(most));
  EXPECT_EQ(fields.times("all"),
            (std::vector{std::to_string(least), std::string("1970-01-01 00:00:00")}));
  EXPECT_EQ(fields.time("far"), "316889355-01-25 17:46:40") << "more milliseconds than 64 bits";
}

TEST(Fields, AMissingOrMistypedFieldIsABadAnswerThatNamesIt) {
  const json answer = {{"name", 5}, {"items", {1}}, {"next", "x"}, {"times", {0, 1.5}}};
  const Fields fields(answer);
  EXPECT_THROW((void)fields.number("missing"), BadAnswer);
  EXPECT_THROW((void)fields.items(), BadAnswer);
  EXPECT_THROW((void)fields.time("next"), BadAnswer);
  EXPECT_THROW((void)fields.times("times"), BadAnswer);
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
