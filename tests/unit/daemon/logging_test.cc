#include "daemon/ops/logging.h"

#include <gtest/gtest.h>

#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "daemon/ops/error_log.h"
#include "daemon/ops/log_repeats.h"

namespace conversed::daemon::log {
namespace {

using nlohmann::json;

std::string json_line(Fields fields) {
  return format(config::LogFormat::json, 1'795'234'512'345, Level::info, "something happened",
                fields);
}

TEST(Logging, LineIsJsonWithTimeLevelAndFields) {
  const auto line = json::parse(json_line({{"sessionId", "s-1"},
                                           {"attempts", 3},
                                           {"bytes", std::size_t{7}},
                                           {"seconds", 0.25},
                                           {"again", true}}));
  EXPECT_EQ(line["time"], "2026-11-21T04:15:12.345Z");
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["event"], "something happened");
  EXPECT_EQ(line["sessionId"], "s-1");
  EXPECT_EQ(line["attempts"], 3);
  EXPECT_EQ(line["bytes"], 7);
  EXPECT_EQ(line["seconds"], 0.25);
  EXPECT_EQ(line["again"], true);
}

TEST(Logging, ValuesOfSecretKeysNeverShow) {
  for (const char* key : {"password", "Password", "token", "key", "secret", "authorization",
                          "Authorization", "api_key", "apiKey", "API-Key", "accessToken",
                          "client_secret", "webhookSecret", "X-Api-Key", "credentials"}) {
    EXPECT_TRUE(is_secret_key(key)) << key;
    for (const auto kind : {config::LogFormat::json, config::LogFormat::text}) {
      const auto line = format(kind, 0, Level::error, "e", {{key, "hunter2"}});
      EXPECT_EQ(line.find("hunter2"), std::string::npos) << line;
      EXPECT_NE(line.find("***"), std::string::npos) << line;
    }
  }
  for (const char* key : {"sessionKey2", "keyphrase", "error", "tokens", "monkey", "secretary"}) {
    EXPECT_FALSE(is_secret_key(key)) << key;
  }
}

TEST(Logging, AnyBytesMakeOneLineOfValidJson) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  const auto line = json_line({{all, all}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_TRUE(json::accept(line)) << line;
}

TEST(Logging, InvalidUtf8IsReplacedAndValidIsKept) {
  const std::string replaced = "\xef\xbf\xbd";
  const auto value_of = [](const std::string& value) {
    return json::parse(json_line({{"v", value}}))["v"].get<std::string>();
  };
  EXPECT_EQ(value_of("gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80"), "gr\xc3\xbc\xc3\x9f \xf0\x9f\x98\x80");
  EXPECT_EQ(value_of("a\xff"
                     "b"),
            "a" + replaced + "b");
  EXPECT_EQ(value_of("\xc3"), replaced);
  EXPECT_EQ(value_of("\xc0\xaf"), replaced + replaced) << "an overlong form";
  EXPECT_EQ(value_of("\xed\xa0\x80"), replaced + replaced + replaced) << "a surrogate";
  EXPECT_EQ(value_of("\xf4\x90\x80\x80").find('\xf4'), std::string::npos) << "past U+10FFFF";
  EXPECT_EQ(value_of(std::string("nul\0!", 5)), std::string("nul\0!", 5));
}

TEST(Logging, TextValueCantForgeALine) {
  const auto line = format(config::LogFormat::text, 0, Level::warn, "refused",
                           {{"user", "eve\n2026 info admin=\"yes\""}, {"plain", "word"}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(line.find("1970-01-01T00:00:00.000Z warn refused user=\"eve\\n"), 0U) << line;
  EXPECT_NE(line.find(" plain=word"), std::string::npos);
}

TEST(Logging, EveryControlCharacterIsEscaped) {
  const std::string value = "a\x1b[1m\x7f\xc2\x9b\xe2\x80\xae";
  const std::string shown = R"(a\u001b[1m\u007f\u009b\u202e)";
  const auto text = format(config::LogFormat::text, 0, Level::warn, "e", {{"v", value}});
  EXPECT_TRUE(text.ends_with(" v=" + shown)) << text;
  const auto line = json_line({{value, value}});
  EXPECT_NE(line.find('"' + shown + "\":\"" + shown + '"'), std::string::npos) << line;
  EXPECT_EQ(json::parse(line)[value], value);
}

TEST(Logging, NotANumberIsStillJson) {
  const double zero = 0;
  EXPECT_TRUE(json::accept(json_line({{"a", zero / zero}, {"b", 1 / zero}})));
}

TEST(Logging, LinesBelowTheLevelAreNotMade) {
  std::vector<std::string> lines;
  set_sink([&](std::string_view line) { lines.emplace_back(line); });
  open({.level = Level::warn, .format = config::LogFormat::json});
  info("quiet");
  warn("loud", {{"n", 1}});
  open({});
  set_sink({});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(json::parse(lines[0])["event"], "loud");
}

TEST(Logging, ThreadsDoNotMixTheirLines) {
  std::vector<std::string> lines;
  set_sink([&](std::string_view line) { lines.emplace_back(line); });
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < 200; ++i) info("line", {{"thread", t}, {"i", i}});
      });
    }
  }
  set_sink({});
  ASSERT_EQ(lines.size(), 800U);
  for (const auto& line : lines) EXPECT_TRUE(json::accept(line)) << line;
}

TEST(Repeats, ALineThatComesAgainIsCountedForAMinute) {
  Repeats repeats;
  const Repeats::TimePoint start{std::chrono::hours(1)};
  EXPECT_TRUE(repeats.is_first("a", start));
  for (int i = 0; i < 300; ++i) EXPECT_FALSE(repeats.is_first("a", start));
  EXPECT_TRUE(repeats.is_first("b", start));
  EXPECT_TRUE(repeats.take_due(start).empty());
  const auto due = repeats.take_due(start + Repeats::window);
  ASSERT_EQ(due.size(), 1U) << "b came only once";
  EXPECT_EQ(due[0].line, "a");
  EXPECT_EQ(due[0].times, 300U);
  EXPECT_TRUE(repeats.take_due(start + Repeats::window).empty());
  EXPECT_TRUE(repeats.is_first("a", start + Repeats::window));
}

TEST(Repeats, BeyondItsMemoryEachLineIsWritten) {
  Repeats repeats;
  for (std::size_t i = 0; i < Repeats::max_lines; ++i) {
    EXPECT_TRUE(repeats.is_first(std::to_string(i), {}));
  }
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(repeats.is_first("further", {}));
}

class LinesOfLog {
 public:
  LinesOfLog() {
    set_sink([this](std::string_view line) { lines_.emplace_back(line); });
  }
  ~LinesOfLog() { set_sink({}); }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

TEST(Logging, AWarningIsWrittenOnceAMinuteUnlessItSaysOtherwise) {
  const LinesOfLog log;
  for (int i = 0; i < 300; ++i) warn("the store can't be read in this test", {{"error", "full"}});
  EXPECT_EQ(log.lines().size(), 1U);
  warn("the store can't be read in this test", {{"error", "locked"}});
  EXPECT_EQ(log.lines().size(), 2U);
  for (int i = 0; i < 2; ++i) info("the store can be read in this test");
  EXPECT_EQ(log.lines().size(), 4U) << "changes are written each time";
  for (int i = 0; i < 2; ++i) warn("a request of this test failed", {{"traceId", "t"}});
  EXPECT_EQ(log.lines().size(), 6U) << "each request has its own line";
}

TEST(ErrorLog, HasALineForEachErrorWithItsTrace) {
  const LinesOfLog log;
  ErrorLog errors;
  errors.write({.method = api::Method::post,
                .route = "/{URLToken}",
                .status = 503,
                .reason = "the store is away",
                .trace_id = "7777"},
               {});
  ASSERT_EQ(log.lines().size(), 1U);
  const auto line = json::parse(log.lines()[0]);
  EXPECT_EQ(line["level"], "warn");
  EXPECT_EQ(line["event"], "request failed");
  EXPECT_EQ(line["traceId"], "7777");
  EXPECT_EQ(line["method"], "POST");
  EXPECT_EQ(line["route"], "/{URLToken}");
  EXPECT_EQ(line["status"], 503);
  EXPECT_EQ(line["reason"], "the store is away");
}

TEST(ErrorLog, StrangersCanNotFloodTheLogNorHideOurErrors) {
  const LinesOfLog log;
  ErrorLog errors;
  const ErrorLog::TimePoint now{};
  const auto write = [&](int status, ErrorLog::TimePoint at) {
    errors.write({.status = status, .reason = "r", .trace_id = "t"}, at);
  };
  for (int i = 0; i < 1000; ++i) write(404, now);
  EXPECT_EQ(log.lines().size(), ErrorLog::lines_at_once);
  write(500, now);
  ASSERT_EQ(log.lines().size(), ErrorLog::lines_at_once + 1);
  write(404, now + std::chrono::seconds(1));
  EXPECT_EQ(json::parse(log.lines().back())["suppressed"], 1000 - ErrorLog::lines_at_once);
}

}  // namespace
}  // namespace conversed::daemon::log
