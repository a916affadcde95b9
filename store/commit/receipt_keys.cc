#include "store/commit/receipt_keys.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "store/model/clock.h"
#include "store/model/hex.h"
#include "store/model/ids.h"

namespace conversed::store {

namespace {

constexpr std::size_t key_digits = 32;
constexpr std::size_t number_digits = 15;  // positive as a signed integer of 64 bits
constexpr std::size_t time_digits = 12;    // model::new_trace_id
constexpr std::uint64_t most_ms =
    100'000'000'000'000;  // the year 5138; model::id_prefix has no later

std::int64_t number_of(std::string_view digits) {
  std::int64_t number = 0;
  for (const char c : digits) number = number * 16 + model::hex_value(c);
  return number;
}

bool is_key(std::string_view digits) {
  return digits.size() == key_digits &&
         std::ranges::all_of(digits, [](char c) { return model::hex_value(c) >= 0; });
}

}  // namespace

std::optional<std::int64_t> key_number(std::string_view digits) {
  if (!is_key(digits)) return std::nullopt;
  return number_of(digits.substr(0, number_digits));
}

std::optional<EventRange> first_second(std::string_view trace_id) {
  // Each event has a trace. The digits behind the time need no look: readers compare whole ids.
  if (trace_id.size() != key_digits) return std::nullopt;
  const char* const end = trace_id.data() + time_digits;
  std::uint64_t began_ms = 0;
  const auto read = std::from_chars(trace_id.data(), end, began_ms, 16);
  if (read.ptr != end || began_ms > most_ms) return std::nullopt;
  const auto began_at = model::from_unix_ms(static_cast<std::int64_t>(began_ms));
  return EventRange{model::id_number(began_at),
                    model::id_number(began_at + std::chrono::seconds(1))};
}

std::optional<std::int64_t> trace_number(std::string_view trace_id, std::string_view event_id) {
  const auto range = first_second(trace_id);
  const auto number = model::id_number(event_id);
  if (range && number >= range->from && number < range->to) return std::nullopt;
  return key_number(trace_id);
}

}  // namespace conversed::store
