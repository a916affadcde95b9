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
  const auto amount_in = [&](Database& database) {
    return read_number(
        database,
        "SELECT amount FROM usage WHERE organisation_id = :o AND counter = :c AND month = :m",
        organisation_id, counter, month);
  };
  auto sum = amount_in(*databases_.front());
  if (!sum || databases_.size() == 1) return sum;
  std::vector<Result<std::int64_t>> others;
  for (std::size_t at = 1; at < databases_.size(); ++at)
    others.push_back(amount_in(*databases_[at]));
  last_.with([&](LastRead& all) {
    Last& last = all[{organisation_id, counter}];
    if (last.month != month) last = {month, std::vector<std::int64_t>(others.size(), 0)};
    for (std::size_t at = 0; at < others.size(); ++at) {
      if (others[at]) last.amounts[at] = *others[at];
      *sum += last.amounts[at];
    }
  });
  return sum;
}

void Usage::add(Writer& writer, const QuotaUse& use) {
  add_usage(writer.connection(), use.organisation_id, use.counter, use.amount, writer.now());
}

}  // namespace conversed::store
