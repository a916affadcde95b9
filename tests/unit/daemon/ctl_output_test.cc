#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>

#include "daemon/ctl/output/fields.h"
#include "daemon/ctl/output/sheet.h"
#include "daemon/ctl/output/table.h"

namespace conversed::ctl {
namespace {

using nlohmann::json;

constexpr Screen file;

Screen terminal(std::size_t columns = 80) {
  Screen screen{.is_terminal = true, .columns = columns, .lines = 24};
  screen.now = std::chrono::sys_seconds(std::chrono::seconds(1'795'356'239));
  return screen;
}

Table two_rows() {
  Table table({"NAME", "COUNT", "REASON"});
  table.add({"a", std::int64_t{7}, "none"});
  table.add({"Größe", std::int64_t{1'234'567}, ""});
  return table;
}

TEST(Table, AlignsTextsAtTheLeftAndNumbersAtTheRight) {
  EXPECT_EQ(two_rows().to_text(terminal()),
            "NAME     COUNT  REASON\n"
            "a            7  none\n"
            "Größe  1234567  -\n");
}

TEST(Table, AFileGetsATabBetweenCells) {
  EXPECT_EQ(two_rows().to_text(file),
            "NAME\tCOUNT\tREASON\n"
            "a\t7\tnone\n"
            "Größe\t1234567\t-\n");
}

TEST(Table, ACellStaysInItsLine) {
  Table table({"NAME"});
  table.add({"a\n\t\x1b[31mb"});
  EXPECT_EQ(table.to_text(terminal()), "NAME\na\\n\\t\\u001b[31mb\n");
  EXPECT_EQ(table.to_text(file), "NAME\na\\n\\t\\u001b[31mb\n");
}

TEST(Table, CellsAreAlignedByTheColumnsThatTheyTake) {
  Table table({"NAME", "STATE"});
  table.add({"你好", Cell(Cell::Kind::state, "idle")});
  table.add({"abcdef", Cell(Cell::Kind::state, "busy")});
  EXPECT_EQ(table.to_text(terminal()),
            "NAME    STATE\n"
            "你好    idle\n"
            "abcdef  busy\n");
}

TEST(Table, TheWidestTextsAreShortenedUntilTheTableFits) {
  Table table({"NAME", "ID", "REASON", "COUNT"});
  table.add({"the first text", Cell(Cell::Kind::id, "6f9619ff8b86d011b42d00c0"), "the second text",
             std::int64_t{1'234'567'890}});
  EXPECT_EQ(table.to_text(terminal(68)),
            "NAME            ID                        REASON               COUNT\n"
            "the first text  6f9619ff8b86d011b42d00c0  the second te…  1234567890\n");
}

TEST(Table, ShortTextsBesideALongOneStayWhole) {
  Table table({"REASON", "USER"});
  table.add({"a reason that is far too long for the window", "ann@example.com"});
  EXPECT_EQ(table.to_text(terminal(34)),
            "REASON             USER\n"
            "a reason that is…  ann@example.com\n");
}

TEST(Table, TextsOfAWrappedColumnGoOnBelowAndAreWhole) {
  Table table({"AT", "STEP"});
  table.wrap_last();
  table.add({"+0 ms", "Flow Orders, version 1; nodes[0]; changed context.updates"});
  table.add({"+9 ms", "delivered"});
  EXPECT_EQ(table.to_text(terminal(32)),
            "AT     STEP\n"
            "+0 ms  Flow Orders, version 1;\n"
            "       nodes[0]; changed\n"
            "       context.updates\n"
            "+9 ms  delivered\n");
  EXPECT_EQ(table.to_text(file),
            "AT\tSTEP\n"
            "+0 ms\tFlow Orders, version 1; nodes[0]; changed context.updates\n"
            "+9 ms\tdelivered\n");
}

TEST(Table, IdsAndNumbersAreWholeOnTheNarrowestTerminal) {
  Table table({"NAME", "ID", "COUNT"});
  table.add({"the first text", Cell(Cell::Kind::id, "6f9619ff8b86d011b42d00c0"),
             std::int64_t{1'234'567'890}});
  EXPECT_EQ(table.to_text(terminal(10)),
            "NAME      ID                             COUNT\n"
            "the fir…  6f9619ff8b86d011b42d00c0  1234567890\n");
}

TEST(Table, ATimeIsAnAgeOnATerminalAndWholeInAFile) {
  Table table({"CREATED"});
  table.add({Cell::at(1'795'356'239 - 190)});
  table.add({Cell::at(std::nullopt)});
  EXPECT_EQ(table.to_text(terminal()), "CREATED\n3 min ago\n-\n");
  EXPECT_EQ(table.to_text(file), "CREATED\n2026-11-22T14:00:49Z\n-\n");
}

TEST(Table, ColorsDoNotChangeTheAlignment) {
  Screen screen = terminal();
  screen.has_colors = true;
  Table table({"STATE", "NAME"});
  table.add({Cell(Cell::Kind::state, "busy"), "a"});
  EXPECT_EQ(table.to_text(screen),
            "\x1b[1mSTATE\x1b[0m  \x1b[1mNAME\x1b[0m\n"
            "\x1b[33mbusy\x1b[0m   a\n");
}

TEST(Age, IsInTheLargestUnitThatSaysEnough) {
  const std::int64_t now = 1'795'356'239;
  const auto at = [&](std::int64_t seconds) { return age(now + seconds, terminal()); };
  EXPECT_EQ(at(0), "now");
  EXPECT_EQ(at(-59), "59 s ago");
  EXPECT_EQ(at(-60), "1 min ago");
  EXPECT_EQ(at(2 * 3600), "in 2 h");
  EXPECT_EQ(at(-47 * 3600), "47 h ago");
  EXPECT_EQ(at(48 * 3600), "in 2 d");
  EXPECT_EQ(at(-3 * 365 * 86'400), "3 y ago");
  EXPECT_TRUE(age(std::numeric_limits<std::int64_t>::max(), terminal()).starts_with("in "));
  EXPECT_TRUE(age(std::numeric_limits<std::int64_t>::min(), terminal()).ends_with(" ago"));
}

TEST(FullTime, IsLocalWithItsZoneOnATerminalAndUtcInAFile) {
  const char* before = std::getenv("TZ");
  const std::string zone = before == nullptr ? "" : before;
  setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
  tzset();
  EXPECT_EQ(full_time(1'795'356'239, terminal()), "2026-11-22 15:03:59 CET (now)");
  EXPECT_EQ(full_time(1'795'356'239, file), "2026-11-22T14:03:59Z");
  EXPECT_EQ(exact_time(1'795'356'239'007, terminal()), "2026-11-22 15:03:59.007 CET");
  EXPECT_EQ(exact_time(1'795'356'239'007, file), "2026-11-22 14:03:59.007 UTC");
  before == nullptr ? unsetenv("TZ") : setenv("TZ", zone.c_str(), 1);
  tzset();
}

TEST(FullTime, ATimeBeyondAllYearsIsShownAsItsNumber) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(full_time(most, terminal()), std::to_string(most));
  EXPECT_EQ(full_time(most, file), std::to_string(most));
  EXPECT_EQ(full_time(10'000'000'000'000'000, file), "316889355-01-25T17:46:40Z")
      << "more milliseconds than 64 bits";
}

const json& session() {
  static const json value = {{"_id", "s1"},
                             {"URLToken", "abc"},
                             {"inboxSize", 0},
                             {"startedAt", nullptr},
                             {"roles", {"a", "b"}},
                             {"warnings", json::array()},
                             {"text", "one\ntwo\x1b"},
                             {"context", {{"orderAt", 5}}},
                             {"execution", {{"source", "inject"}}},
                             {"outputs", {{{"seq", 1}, {"text", "Hi"}}, {{"seq", 2}}}}};
  return value;
}

TEST(Sheet, ATerminalGetsALineForEachMemberAndTablesOfObjects) {
  EXPECT_EQ(sheet_of(session(), terminal()),
            "URL token   abc\n"
            "Id          s1\n"
            "Inbox size  0\n"
            "Roles       a,b\n"
            "Started     -\n"
            "Text        one\n"
            "            two\\u001b\n"
            "Warnings    -\n"
            "Context\n"
            "  {\n"
            "    \"orderAt\": 5\n"
            "  }\n"
            "Execution\n"
            "  Source  inject\n"
            "Outputs\n"
            "  SEQ  TEXT\n"
            "    1  Hi\n"
            "    2  -\n");
}

TEST(Sheet, ReasonsAreSentencesAndTimesHaveTheirZone) {
  const json shown = {{"failingSince", 1'795'356'239 - 190},
                      {"next", {1'795'356'239, 1'795'356'239 + 7'200}},
                      {"partitions", {0, 1}},
                      {"uptime", 8},
                      {"waits",
                       {{{"reason", "call"},
                         {"subject", "The Flow Orders calls crm."},
                         {"since", 1'795'356'239},
                         {"expectedAt", nullptr},
                         {"remedy", "Check the upstream."}}}}};
  const Screen screen = terminal();
  EXPECT_EQ(sheet_of(shown, screen),
            "Failing since  " + full_time(1'795'356'239 - 190, screen) + "\nNext           " +
                full_time(1'795'356'239, screen) + "\n               " +
                full_time(1'795'356'239 + 7'200, screen) +
                "\nPartitions     0,1\nUptime         8 s\nWaits\n"
                "  call: The Flow Orders calls crm.\n"
                "    since " +
                full_time(1'795'356'239, screen) + "\n    Check the upstream.\n");
}

TEST(Sheet, AFileGetsThePathAndTheValueOfEachMember) {
  EXPECT_EQ(sheet_of(session(), file),
            "URLToken\tabc\n"
            "_id\ts1\n"
            "context/orderAt\t5\n"
            "execution/source\tinject\n"
            "inboxSize\t0\n"
            "outputs/0/seq\t1\n"
            "outputs/0/text\tHi\n"
            "outputs/1/seq\t2\n"
            "roles/0\ta\n"
            "roles/1\tb\n"
            "startedAt\t-\n"
            "text\tone\\ntwo\\u001b\n"
            "warnings\t-\n");
}

TEST(Sheet, AFileGetsTheTimesOfAListAsTimes) {
  const json shown = {{"next", {1'795'356'239}}, {"roles", {"a"}}, {"context", {{"next", {5}}}}};
  EXPECT_EQ(sheet_of(shown, file), "context/next/0\t5\nnext/0\t2026-11-22T14:03:59Z\nroles/0\ta\n");
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
  EXPECT_EQ(fields.time("at"), 1'795'356'239);
  EXPECT_EQ(fields.time("none"), std::nullopt);
  EXPECT_FALSE(fields.has("none"));
  EXPECT_EQ(fields.text_if_any("missing"), "");
  EXPECT_EQ(fields.texts("roles"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(fields.items().at(0).text("name"), "first");
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
