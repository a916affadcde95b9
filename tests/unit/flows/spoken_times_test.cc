// Times of day in words.
#include "flows/words/spoken_times.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace conversed::flows {
namespace {

std::string time_of(const std::string& text) {
  const auto time = read_spoken_time(text);
  if (!time) return "none";
  return std::to_string(time->hour) + ":" + std::to_string(time->minute);
}

void expect_times(const std::vector<std::pair<std::string, std::string>>& all) {
  for (const auto& [text, time] : all) EXPECT_EQ(time_of(text), time) << text;
}

TEST(SpokenTimes, OfEnglish) {
  expect_times(
      {{"half past seven", "7:30"},      {"Half-past 7!", "7:30"},
       {"half seven", "7:30"},           {"quarter to nine", "8:45"},
       {"a quarter past nine", "9:15"},  {"ten after nine", "9:10"},
       {"twenty-five to nine", "8:35"},  {"twenty five minutes past seven in the evening", "19:25"},
       {"nine minutes to five", "4:51"}, {"seven thirty", "7:30"},
       {"seven oh five", "7:5"},         {"seven thirty pm", "19:30"},
       {"twenty twenty-five", "20:25"},  {"twenty one thirty", "21:30"},
       {"seven o'clock", "7:0"},         {"at seven", "7:0"},
       {"seven in the evening", "19:0"}, {"twelve at night", "0:0"},
       {"5 to midnight", "23:55"},       {"quarter to noon", "11:45"},
       {"quarter past midnight", "0:15"}});
}

TEST(SpokenTimes, OfGerman) {
  expect_times({{"halb acht", "7:30"},
                {"halb 8", "7:30"},
                {"um halb acht abends", "19:30"},
                {"viertel nach sieben", "7:15"},
                {"viertel vor sieben", "6:45"},
                {"viertel acht", "7:15"},
                {"dreiviertel acht", "7:45"},
                {"fünf vor halb acht", "7:25"},
                {"fuenf nach halb acht", "7:35"},
                {"zehn nach acht", "8:10"},
                {"sieben Uhr", "7:0"},
                {"sieben Uhr dreißig", "7:30"},
                {"ein Uhr nachts", "1:0"},
                {"um sieben", "7:0"},
                {"7 Uhr früh", "7:0"},
                {"19 Uhr abends", "19:0"},
                {"zwölf Uhr mittags", "12:0"},
                {"ein Uhr mittags", "13:0"},
                {"drei Uhr am Nachmittag", "15:0"},
                {"elf Uhr in der Nacht", "23:0"},
                {"zehn Minuten vor Mitternacht", "23:50"}});
}

// As a clock shows it: `12:45`, not `00:45`.
TEST(SpokenTimes, BeforeOneOClockIsTwelve) {
  expect_times({{"quarter to one", "12:45"},
                {"quarter to one at night", "0:45"},
                {"halb eins", "12:30"},
                {"halb eins mittags", "12:30"},
                {"halb eins nachts", "0:30"},
                {"viertel vor dreizehn", "12:45"}});
}

TEST(SpokenTimes, OtherTextsAreNone) {
  for (const std::string text : {"seven",
                                 "twenty five",
                                 "nine to five",
                                 "half past seven please",
                                 "half past thirty",
                                 "half past",
                                 "half",
                                 "thirteen pm",
                                 "nineteen in the morning",
                                 "one in the evening",
                                 "at",
                                 "uhr",
                                 "halb",
                                 "viertel",
                                 "viertel vor",
                                 "acht",
                                 "sieben Uhr siebzig",
                                 "to to to",
                                 "noon",
                                 "seven pizzas",
                                 "past seven",
                                 "quarter half seven",
                                 "halb halb acht",
                                 ""}) {
    EXPECT_EQ(time_of(text), "none") << text;
  }
  std::string text = "half past seven";
  text.append(std::size_t{64} << 10, ' ');
  EXPECT_EQ(time_of(text), "none");
}

}  // namespace
}  // namespace conversed::flows
