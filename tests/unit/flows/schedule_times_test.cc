#include "flows/time/schedule_times.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "flows/time/cron.h"
#include "flows/time/time_zone.h"

namespace conversed::flows {
namespace {

using model::Schedule;
using model::Timestamp;
using Times = std::vector<Timestamp>;

Timestamp utc(const std::string& text) {
  const auto zone = TimeZone::find("UTC");
  auto time = parse_moment(text, *zone);
  EXPECT_TRUE(time) << text;
  return time.value_or(Timestamp{});
}

Times utc_list(const std::vector<std::string>& texts) {
  Times times;
  for (const auto& text : texts) times.push_back(utc(text));
  return times;
}

// The next times after a moment, by the clock of the zone.
Times following(const std::string& cron, const std::string& after, std::size_t count,
                const std::string& zone = "UTC") {
  auto rule = Cron::parse(cron);
  EXPECT_TRUE(rule) << cron;
  Times times;
  Timestamp at = utc(after);
  while (rule && times.size() < count) {
    const auto next = rule->next(at, *TimeZone::find(zone));
    if (!next) break;
    times.push_back(at = *next);
  }
  return times;
}

TEST(Cron, FieldsAreThoseOfCrontab) {
  EXPECT_EQ(following("30 9 * * *", "2027-01-01T09:30", 2),
            utc_list({"2027-01-02T09:30", "2027-01-03T09:30"}));
  EXPECT_EQ(following("*/20 8-9 * * *", "2027-01-01T08:10", 5),
            utc_list({"2027-01-01T08:20", "2027-01-01T08:40", "2027-01-01T09:00",
                      "2027-01-01T09:20", "2027-01-01T09:40"}));
  EXPECT_EQ(following("0 0 1,15 jan,FEB *", "2027-01-10T00:00", 3),
            utc_list({"2027-01-15T00:00", "2027-02-01T00:00", "2027-02-15T00:00"}));
  // 1 January 2027 is a Friday.
  EXPECT_EQ(following("0 9 * * mon-fri", "2027-01-01T10:00", 2),
            utc_list({"2027-01-04T09:00", "2027-01-05T09:00"}));
  EXPECT_EQ(following("0 9 * * 7", "2027-01-01T10:00", 1), utc_list({"2027-01-03T09:00"}));
  EXPECT_EQ(following("5/25 0 * * *", "2027-01-01T00:00", 3),
            utc_list({"2027-01-01T00:05", "2027-01-01T00:30", "2027-01-01T00:55"}));
  EXPECT_EQ(following("@hourly", "2027-01-01T10:01", 1), utc_list({"2027-01-01T11:00"}));
}

TEST(Cron, EitherOfTwoRestrictedKindsOfDaysMatches) {
  EXPECT_EQ(following("0 0 13 * 5", "2027-01-01T00:00", 3),
            utc_list({"2027-01-08T00:00", "2027-01-13T00:00", "2027-01-15T00:00"}));
}

TEST(Cron, LeapDayComesInLeapYearsAndNoDayNever) {
  EXPECT_EQ(following("0 0 29 2 *", "2027-01-01T00:00", 2),
            utc_list({"2028-02-29T00:00", "2032-02-29T00:00"}));
  EXPECT_EQ(following("0 0 30 2 *", "2027-01-01T00:00", 1), Times());
}

// Berlin's clock goes from 02:00 to 03:00 on 28 March 2027 and from 03:00 to 02:00 on 31 October.
TEST(Cron, TimesInTheGapOfSpringComeAnHourLater) {
  EXPECT_EQ(following("30 2 * * *", "2027-03-27T00:00", 3, "Europe/Berlin"),
            utc_list({"2027-03-27T01:30", "2027-03-28T01:30", "2027-03-29T00:30"}));
}

TEST(Cron, TimesInTheRepeatedHourOfAutumnComeOnce) {
  EXPECT_EQ(following("30 2 * * *", "2027-10-30T12:00", 2, "Europe/Berlin"),
            utc_list({"2027-10-31T00:30", "2027-11-01T01:30"}));
}

TEST(Cron, EveryHourFollowsTheTimeThatPasses) {
  EXPECT_EQ(following("30 * * * *", "2027-03-28T00:00", 3, "Europe/Berlin"),
            utc_list({"2027-03-28T00:30", "2027-03-28T01:30", "2027-03-28T02:30"}));
  EXPECT_EQ(
      following("30 * * * *", "2027-10-30T23:00", 4, "Europe/Berlin"),
      utc_list({"2027-10-30T23:30", "2027-10-31T00:30", "2027-10-31T01:30", "2027-10-31T02:30"}));
}

// Each time is later than the last and matches the wall clock of the zone.
TEST(Cron, NoTimeIsLeftOutOverYearsOfOddZones) {
  for (const std::string zone : {"Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo",
                                 "Asia/Kathmandu", "Africa/Casablanca", "America/St_Johns"}) {
    const auto times = following("*/30 * * * *", "2026-01-01T00:00", 2 * 17'520, zone);
    ASSERT_EQ(times.size(), 2U * 17'520);
    for (std::size_t i = 1; i < times.size(); ++i) {
      const auto pause = times[i] - times[i - 1];
      ASSERT_GT(pause.count(), 0) << zone;
      ASSERT_LE(pause, std::chrono::minutes(30)) << zone;
      ASSERT_EQ(TimeZone::find(zone)->local(times[i]) % (30 * minute_ms), 0) << zone;
    }
  }
}

TEST(Cron, ProblemsAreNamed) {
  for (const auto& [text, field] :
       std::vector<std::pair<std::string, std::string>>{{"", "five fields"},
                                                        {"* * * *", "five fields"},
                                                        {"* * * * * *", "five fields"},
                                                        {"60 * * * *", "the minute"},
                                                        {"* 24 * * *", "the hour"},
                                                        {"* * 0 * *", "the day of the month"},
                                                        {"* * * 13 *", "the month"},
                                                        {"* * * foo *", "the month"},
                                                        {"* * * * 8", "the day of the week"},
                                                        {"*/0 * * * *", "the minute"},
                                                        {"*/ * * * *", "the minute"},
                                                        {"5-1 * * * *", "the minute"},
                                                        {"1,,2 * * * *", "the minute"},
                                                        {"-1 * * * *", "the minute"},
                                                        {"99999999999 * * * *", "the minute"},
                                                        {"@reboot", "five fields"},
                                                        {std::string(300, '*'), "characters"}}) {
    auto rule = Cron::parse(text);
    ASSERT_FALSE(rule) << text;
    EXPECT_NE(rule.error().message.find(field), std::string::npos) << rule.error().message;
  }
}

TEST(Moments, AreInTheZoneUnlessTheyNameAnOffset) {
  const auto berlin = *TimeZone::find("Europe/Berlin");
  EXPECT_EQ(*parse_moment("2027-07-01T10:00", berlin), utc("2027-07-01T08:00"));
  EXPECT_EQ(*parse_moment("2027-07-01 10:00:30", berlin), utc("2027-07-01T08:00:30Z"));
  EXPECT_EQ(*parse_moment("2027-07-01T10:00Z", berlin), utc("2027-07-01T10:00"));
  EXPECT_EQ(*parse_moment("2027-07-01T10:00-05:30", berlin), utc("2027-07-01T15:30"));
  EXPECT_EQ(*parse_moment("2027-03-28T02:30", berlin), utc("2027-03-28T01:30"));
  EXPECT_EQ(*parse_moment("2027-10-31T02:30", berlin), utc("2027-10-31T00:30"));
  for (const char* text : {"", "tomorrow", "2027-02-30T10:00", "2027-01-01", "2027-01-01T24:00",
                           "2027-01-01T10:60", "2027-01-01T10:00+1", "2027-01-01T10:00Zx",
                           "2027-01T10:00", "2027T10:00", "2027-01-01T10:00:00.5"}) {
    EXPECT_FALSE(parse_moment(text, berlin)) << text;
  }
}

TEST(ScheduleTimes, ExactlyOneOfInAtAndCronIsRequired) {
  const auto now = utc("2027-01-01T00:00");
  Schedule schedule;
  ASSERT_TRUE(set_times(schedule, {.in = "20m"}, now));
  EXPECT_EQ(schedule.due_at, utc("2027-01-01T00:20"));
  EXPECT_EQ(next_times(schedule, 10), Times{schedule.due_at});
  ASSERT_TRUE(set_times(schedule, {.cron = "0 9 * * *", .timezone = "Europe/Berlin"}, now));
  EXPECT_EQ(next_times(schedule, 2), utc_list({"2027-01-01T08:00", "2027-01-02T08:00"}));
  ASSERT_TRUE(set_times(schedule, {.at = "2026-12-31T23:00"}, now))
      << "a time of the last hours is due at once";
  EXPECT_TRUE(schedule.cron.empty());
  for (const ScheduleWish& wish :
       {ScheduleWish{}, ScheduleWish{.at = "2027-01-02T00:00", .in = "20m"},
        ScheduleWish{.in = "soon"}, ScheduleWish{.in = "4000d"},
        ScheduleWish{.at = "2026-12-30T00:00"}, ScheduleWish{.at = "9999-01-01T00:00"},
        ScheduleWish{.cron = "0 0 30 2 *"}, ScheduleWish{.in = "1h", .timezone = "Mars/Olympus"}}) {
    EXPECT_FALSE(set_times(schedule, wish, now));
  }
}

TEST(ScheduleTimes, MissedTimesComeOnce) {
  Schedule schedule;
  ASSERT_TRUE(set_times(schedule, {.cron = "0 9 * * *"}, utc("2027-01-01T10:00")));
  EXPECT_EQ(next_time(schedule, utc("2027-01-05T12:00")), utc("2027-01-06T09:00"));
  // A clock that was set back does not give the same time again.
  EXPECT_EQ(next_time(schedule, utc("2027-01-01T12:00")), utc("2027-01-03T09:00"));
}

}  // namespace
}  // namespace conversed::flows
