#include "api/representation/query.h"

#include <charconv>

namespace conversed::api {

using model::Errc;
using model::Result;

Result<std::int64_t> number_parameter(const Request& request, std::string_view name,
                                      std::int64_t min, std::int64_t max, std::int64_t absent) {
  const auto text = request.parameter(name);
  if (!text) return absent;
  std::int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, value);
  if (text->empty() || error != std::errc{} || stop != end || value < min || value > max) {
    return model::fail(Errc::invalid_argument, std::string(name) + " must be a whole number from " +
                                                   std::to_string(min) + " to " +
                                                   std::to_string(max));
  }
  return value;
}

Result<std::int64_t> limit_parameter(const Request& request) {
  return number_parameter(request, "limit", 1, max_page_limit, default_page_limit);
}

Result<std::int64_t> wait_parameter(const Request& request) {
  return number_parameter(request, "wait", 0, max_wait_seconds, 0);
}

Result<std::string> required_parameter(const Request& request, std::string_view name) {
  const auto text = request.parameter(name);
  if (!text || text->empty()) {
    return model::fail(Errc::invalid_argument,
                       "the query parameter " + std::string(name) + " is required");
  }
  return std::string(*text);
}

}  // namespace conversed::api
