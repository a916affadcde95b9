#include "store/text/times.h"

#include <array>
#include <ctime>

namespace conversed::text {

std::string utc_time(std::chrono::sys_seconds time, const char* format) {
  const std::time_t seconds = time.time_since_epoch().count();
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return std::to_string(seconds);
  std::array<char, 64> text{};  // the programs stay in the locale "C"
  return {text.data(), std::strftime(text.data(), text.size(), format, &parts)};
}

std::string iso_time(Milliseconds time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  const auto digits = std::to_string(1000 + (time - seconds).count()).substr(1);
  return utc_time(seconds, "%Y-%m-%dT%H:%M:%S.") + digits + 'Z';
}

}  // namespace conversed::text
