#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "queue/log.h"

namespace conversed::test {

// A log that can be closed and opened again, for one test. One thread at a time.
class LogFixture {
 public:
  virtual ~LogFixture() = default;
  // Opens the log as it was left, with this count of partitions. Destroys the log opened before.
  [[nodiscard]] virtual std::unique_ptr<queue::Log> open() = 0;
};

// A driver for the suite in `log_conformance.cc`. To add a driver, link that file with a file that
// calls INSTANTIATE_TEST_SUITE_P(<driver>, LogConformance, ...).
struct LogDriver {
  std::string name;
  std::function<std::unique_ptr<LogFixture>(std::int32_t partitions)> make;
};
inline void PrintTo(const LogDriver& driver, std::ostream* out) {
  *out << driver.name;
}

}  // namespace conversed::test
