// The values that people's answers stand for.
#include "flows/nodes/answers.h"

#include <gtest/gtest.h>

namespace conversed::flows {
namespace {

using model::from_unix_ms;
constexpr std::int64_t a_saturday = 1'795'258'800'000;  // 2026-11-21 11:00 UTC

std::string date(std::string_view text, DateOrder order = DateOrder::day_first) {
  return read_date(text, order, from_unix_ms(a_saturday)).value_or("none");
}
std::string time_of(std::string_view text) {
  return read_time(text).value_or("none");
}

TEST(Answers, NumbersAreTheWholeText) {
  EXPECT_EQ(read_number(" +3 "), 3);
  EXPECT_EQ(read_number("-2.5"), -2.5);
  EXPECT_FALSE(read_number("3 of them"));
  EXPECT_FALSE(read_number("+-3"));
  EXPECT_FALSE(read_number("inf"));
  EXPECT_EQ(as_integer(4), 4);
  EXPECT_EQ(as_integer(4.0), 4);
  EXPECT_FALSE(as_integer(4.5));
  EXPECT_FALSE(as_integer(1e300));
}

TEST(Answers, NumbersHaveTheMarksOfTheLocale) {
  EXPECT_EQ(read_number(" 2,5 ", "de"), 2.5);
  EXPECT_EQ(read_number("1.000", "de"), 1000);
  EXPECT_EQ(read_number("-1.234.567,25", "de-AT").value(), -1234567.25);
  EXPECT_EQ(read_number("1,000", "en"), 1000);
  EXPECT_EQ(read_number("+1,000.5", "en"), 1000.5);
  EXPECT_EQ(read_number("1 000,5", "fr"), 1000.5);
  EXPECT_EQ(read_number("1\u202f000", "fr"), 1000);
  EXPECT_EQ(read_number("1'000.5", "de-CH"), 1000.5);
  // Otherwise as without a locale.
  EXPECT_EQ(read_number("2.5", "de"), 2.5);
  EXPECT_EQ(read_number("0.500", "de"), 0.5);
  EXPECT_EQ(read_number("1e3", "de"), 1000);
  EXPECT_EQ(read_number("-7", "de"), -7);
  for (const char* text : {"1.00", "1.0000,5", "1.000.5", "1,000,5", ",5", "1.000,", "1,5 kg"}) {
    const auto plain = read_number(text);
    EXPECT_EQ(read_number(text, "de"), plain) << text;
  }
  EXPECT_FALSE(read_number("2,5", "en"));
  EXPECT_FALSE(read_number("2,5", ""));
}

TEST(Answers, SpelledNumbersAreTheWholeText) {
  EXPECT_EQ(read_spelled_number(" Two! ", "en"), 2);
  EXPECT_EQ(read_spelled_number("minus two point five", "en"), -2.5);
  EXPECT_EQ(read_spelled_number("minus zero", "en"), 0);
  EXPECT_EQ(read_spelled_number("zwei", "de-AT"), 2);
  EXPECT_FALSE(read_spelled_number("two pizzas please", "en"));
  EXPECT_FALSE(read_spelled_number("two", "de"));
  EXPECT_FALSE(read_spelled_number("two", "Deutsch"));
  EXPECT_FALSE(read_spelled_number("two", ""));
  EXPECT_FALSE(read_spelled_number("", "en"));
}

TEST(Answers, AddressesAreFoundAmongWords) {
  EXPECT_EQ(read_email("it's <Ann.B@example.co.uk>, thanks"), "Ann.B@example.co.uk");
  EXPECT_FALSE(read_email("ann@localhost"));
  EXPECT_FALSE(read_email("ann at example.com"));
  EXPECT_EQ(read_url("see https://example.com/a?b=1."), "https://example.com/a?b=1");
  EXPECT_EQ(read_url("www.example.com"), "https://www.example.com");
  EXPECT_FALSE(read_url("example"));
}

TEST(Answers, PhoneNumbersComeAsDigits) {
  EXPECT_EQ(read_phone("+49 (30) 12-34"), "+49301234");
  EXPECT_EQ(read_phone("0049301234"), "+49301234");
  EXPECT_EQ(read_phone("030/123 45"), "03012345");
  EXPECT_FALSE(read_phone("123"));
  EXPECT_FALSE(read_phone("12345678901234567"));
  EXPECT_FALSE(read_phone("call 12345"));
}

TEST(Answers, DatesOfManyForms) {
  EXPECT_EQ(date("2027-02-01"), "2027-02-01");
  EXPECT_EQ(date(" 1.2.2027 "), "2027-02-01");
  EXPECT_EQ(date("1/2/27"), "2027-02-01");
  EXPECT_EQ(date("1/2/27", DateOrder::month_first), "2027-01-02");
  EXPECT_EQ(date("24.12."), "2026-12-24");
  EXPECT_EQ(date("1.2."), "2027-02-01") << "this year's has passed";
  EXPECT_EQ(date("29.2."), "2028-02-29") << "the next leap year's";
  EXPECT_EQ(date("29.2.2027"), "none");
  EXPECT_EQ(date("31/4/2027"), "none");
  EXPECT_EQ(date("Tomorrow!"), "2026-11-22");
  EXPECT_EQ(date("übermorgen"), "2026-11-23");
  EXPECT_EQ(date("aujourd'hui"), "2026-11-21");
  EXPECT_EQ(date("soon"), "none");
  EXPECT_EQ(date("1-2"), "2027-02-01");
  EXPECT_EQ(date("99999-1-1"), "none");
}

TEST(Answers, TimesInWords) {
  EXPECT_EQ(read_time_in_words("half past seven"), "07:30");
  EXPECT_EQ(read_time_in_words("halb acht abends"), "19:30");
  EXPECT_FALSE(read_time_in_words("seven"));
}

TEST(Answers, TimesOfManyForms) {
  EXPECT_EQ(time_of("14:30"), "14:30");
  EXPECT_EQ(time_of("at 9.05"), "09:05");
  EXPECT_EQ(time_of("2 p.m."), "14:00");
  EXPECT_EQ(time_of("12am"), "00:00");
  EXPECT_EQ(time_of("2:15 PM"), "14:15");
  EXPECT_EQ(time_of("14h30"), "14:30");
  EXPECT_EQ(time_of("um 14 Uhr"), "14:00");
  EXPECT_EQ(time_of("at8pm"), "20:00");
  EXPECT_EQ(time_of("um14uhr"), "14:00");
  EXPECT_EQ(time_of("noon"), "12:00");
  EXPECT_EQ(time_of("25:00"), "none");
  EXPECT_EQ(time_of("13 pm"), "none");
  EXPECT_EQ(time_of("7"), "none") << "a number alone is no time";
  EXPECT_EQ(time_of("later"), "none");
}

}  // namespace
}  // namespace conversed::flows
