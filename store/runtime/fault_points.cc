#include "store/runtime/fault_points.h"

#include <unistd.h>

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

namespace conversed::model {
namespace {

constexpr const char* kill_variable = "CONVERSED_TEST_KILL_AT";
constexpr const char* hold_variable = "CONVERSED_TEST_HOLD_AT";
constexpr const char* fifo_variable = "CONVERSED_TEST_HOLD_FIFO";

// One point, at the n-th time that it is reached. Thread-safe.
class Target {
 public:
  explicit Target(const char* variable) {
    const char* text = std::getenv(variable);
    if (text == nullptr) return;
    name_ = text;
    const auto colon = name_.rfind(':');
    if (colon == std::string::npos) return;
    const char* last = name_.data() + name_.size();
    const auto parsed = std::from_chars(name_.data() + colon + 1, last, at_);
    // A test that misspells its target must not pass because nothing ever happened.
    if (parsed.ec != std::errc{} || parsed.ptr != last || at_ == 0) std::abort();
    name_.resize(colon);
  }

  bool is_reached(std::string_view name) {
    return name == name_ && reached_.fetch_add(1) + 1 == at_;
  }

 private:
  std::string name_;
  std::uint64_t at_ = 1;
  std::atomic<std::uint64_t> reached_{0};
};

// Opening the FIFO waits until a test opens the other end. Reading waits until the test closes it.
void hold() {
  const char* path = std::getenv(fifo_variable);
  while (path == nullptr) ::pause();
  std::ifstream fifo(path);
  while (fifo.get() != std::ifstream::traits_type::eof()) {
  }
}

}  // namespace

namespace detail {

const bool fault_points_armed =
    std::getenv(kill_variable) != nullptr || std::getenv(hold_variable) != nullptr;

void reach_fault_point(std::string_view name) {
  static Target held(hold_variable);
  static Target killed(kill_variable);
  if (held.is_reached(name)) hold();
  if (killed.is_reached(name)) std::raise(SIGKILL);
}

}  // namespace detail
}  // namespace conversed::model
