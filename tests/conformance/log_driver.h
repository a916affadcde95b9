#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "queue/log.h"

namespace conversed::test {

// One log that can be closed and opened again, for one test. One thread at a time.
class LogFixture {
 public:
  virtual ~LogFixture() = default;
  // The log as it was left, with this many partitions. The one opened before is destroyed.
  [[nodiscard]] virtual std::unique_ptr<queue::Log> open() = 0;
};

// A driver to put through the suite in `log_conformance.cc`. To add one, link that file with one
// that calls INSTANTIATE_TEST_SUITE_P(<driver>, LogConformance, ...).
struct LogDriver {
  std::string name;
  std::function<std::unique_ptr<LogFixture>(std::int32_t partitions)> make;
};
inline void PrintTo(const LogDriver& driver, std::ostream* out) {
  *out << driver.name;
}

}  // namespace conversed::test
