#include "store/model/fault_points.h"

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace conversed::model {
namespace {

constexpr const char* variable = "CONVERSED_TEST_KILL_AT";

struct Target {
  std::string name;
  std::uint64_t at = 1;
};

Target read_target() {
  const char* text = std::getenv(variable);
  if (text == nullptr) return {};
  Target target{text, 1};
  const auto colon = target.name.rfind(':');
  if (colon == std::string::npos) return target;
  const char* last = target.name.data() + target.name.size();
  const auto parsed = std::from_chars(target.name.data() + colon + 1, last, target.at);
  // A test that misspells its target must not pass because nothing was ever killed.
  if (parsed.ec != std::errc{} || parsed.ptr != last || target.at == 0) std::abort();
  target.name.resize(colon);
  return target;
}

const Target& target() {
  static const Target read = read_target();
  return read;
}

std::atomic<std::uint64_t> reached{0};

}  // namespace

namespace detail {

const bool fault_points_armed = std::getenv(variable) != nullptr;

void reach_fault_point(std::string_view name) {
  if (name != target().name) return;
  if (reached.fetch_add(1) + 1 == target().at) std::raise(SIGKILL);
}

}  // namespace detail
}  // namespace conversed::model
