#include "store/commit/usage.h"

#include <array>
#include <cstdio>

#include "store/commit/row_writes.h"
#include "store/sql/read.h"

namespace conversed::store {

std::string month_of(model::Timestamp time) {
  const std::chrono::year_month_day day(std::chrono::floor<std::chrono::days>(time));
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u", static_cast<int>(day.year()),
                static_cast<unsigned>(day.month()));
  return text.data();
}

Result<std::int64_t> Usage::used(const std::string& organisation_id, const std::string& counter,
                                 const std::string& month) const {
  return read_number(
      database_,
      "SELECT amount FROM usage WHERE organisation_id = :o AND counter = :c AND month = :m",
      organisation_id, counter, month);
}

void Usage::add(Writer& writer, const QuotaUse& use) {
  add_usage(writer.connection(), use.organisation_id, use.counter, use.amount, writer.now());
}

}  // namespace conversed::store
