#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "store/model/clock.h"

// Reads answers that people write. Each function returns the answer in one form, or nothing if the
// text is no such answer. Pure.
namespace conversed::flows {

// A decimal number without other text (`3`, `-2.5`, `+1e3`). Whole numbers that fit stay whole.
[[nodiscard]] std::optional<nlohmann::json> read_number(std::string_view text);
// The same with the marks of the locale (unmarked_number): `1.000` of German is 1000. A text that
// is no number with these marks is read as above.
[[nodiscard]] std::optional<nlohmann::json> read_number(std::string_view text,
                                                        std::string_view locale);
// The same in words of the locale's language, without other text: `twenty-one`, `minus two point
// five`. Takes up to 10 ms, and longer for the first one of a language.
[[nodiscard]] std::optional<nlohmann::json> read_spelled_number(std::string_view text,
                                                                std::string_view locale);
// A whole number in place of a number such as 4.0. Nothing for other numbers.
[[nodiscard]] std::optional<nlohmann::json> as_integer(const nlohmann::json& number);

// The first e-mail address among the words, such as in `it's ann@example.com`.
[[nodiscard]] std::optional<std::string> read_email(std::string_view text);
// The first http or https URL among the words. `www.example.com` gets `https://`.
[[nodiscard]] std::optional<std::string> read_url(std::string_view text);
// A telephone number of 5 to 15 digits, as digits with an optional `+`: `+49 (30) 12-34` is
// `+49301234`, and so is `0049301234`.
[[nodiscard]] std::optional<std::string> read_phone(std::string_view text);

// The order of `1/2/2027`.
enum class DateOrder : std::uint8_t { day_first, month_first };

// A day as `YYYY-MM-DD`. Understands `2027-02-01`, `1.2.2027` and `1/2/2027`. The last two may have
// a year of two digits or none, which means the next such day from today on. Understands `today`,
// `tomorrow` and `the day after tomorrow` in some languages. `today` is the current day of the
// user.
[[nodiscard]] std::optional<std::string> read_date(std::string_view text, DateOrder order,
                                                   model::Timestamp today);

// A time of day as `HH:MM`. Understands `14:30`, `14.30`, `14h30`, `2 pm`, `2:30 p.m.`, `14 Uhr`,
// `noon`, `midnight`.
[[nodiscard]] std::optional<std::string> read_time(std::string_view text);
// The same for a time in words, in English and German (read_spoken_time). Takes time as
// read_spelled_number does.
[[nodiscard]] std::optional<std::string> read_time_in_words(std::string_view text);

}  // namespace conversed::flows
