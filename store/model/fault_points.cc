#include "store/model/fault_points.h"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace conversed::model {
namespace {

constexpr const char* kill_variable = "CONVERSED_TEST_KILL_AT";
constexpr const char* freeze_variable = "CONVERSED_TEST_FREEZE_AT";

struct Target {
  std::string name;
  std::uint64_t at = 1;
  std::atomic<std::uint64_t> reached{0};

  explicit Target(const char* variable) {
    const char* text = std::getenv(variable);
    if (text == nullptr) return;
    name = text;
    const auto colon = name.rfind(':');
    if (colon == std::string::npos) return;
    const char* last = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + colon + 1, last, at);
    // A test that misspells its target must not pass because nothing ever happened there.
    if (parsed.ec != std::errc{} || parsed.ptr != last || at == 0) std::abort();
    name.resize(colon);
  }

  // Whether the point of this name is now reached for the n-th time.
  bool hit(std::string_view point) { return point == name && reached.fetch_add(1) + 1 == at; }
};

Target& kill_target() {
  static Target target(kill_variable);
  return target;
}

Target& freeze_target() {
  static Target target(freeze_variable);
  return target;
}

}  // namespace

namespace detail {

const bool fault_points_armed =
    std::getenv(kill_variable) != nullptr || std::getenv(freeze_variable) != nullptr;

void reach_fault_point(std::string_view name) {
  if (kill_target().hit(name)) std::raise(SIGKILL);
  if (freeze_target().hit(name)) {
    for (;;) ::pause();
  }
}

}  // namespace detail
}  // namespace conversed::model
