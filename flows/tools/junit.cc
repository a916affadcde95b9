#include <cstdio>

#include "flows/expression/text.h"
#include "flows/tools/flow_test.h"
#include "store/text/joined.h"
#include "store/text/markup.h"

namespace conversed::flows::tools {
namespace {

// Leaves out the control characters that XML 1.0 can't hold.
std::string escaped(const std::string& text) {
  std::string kept = expression::scrub(text);
  std::erase_if(kept, [](unsigned char c) { return c < 0x20 && c != '\n' && c != '\t'; });
  return text::escape_markup(kept);
}

std::string seconds(std::chrono::microseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6f", std::chrono::duration<double>(time).count());
  return text;
}

std::string failure_of(const std::string& file, const Failure& failure) {
  const std::string place = file + ':' + std::to_string(failure.place.line);
  return "      <failure message=\"" + escaped(failure.message) + "\">" +
         escaped(place + ": " + failure.message) + "</failure>\n";
}

}  // namespace

std::string junit_of(const std::vector<SuiteResult>& suites) {
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  for (const auto& suite : suites) {
    std::size_t failed = 0;
    for (const auto& test : suite.tests) failed += test.failures.empty() ? 0 : 1;
    const bool broken = !suite.problems.empty();
    xml += "  <testsuite name=\"" + escaped(suite.file) + "\" tests=\"" +
           std::to_string(suite.tests.size() + (broken ? 1 : 0)) + "\" failures=\"" +
           std::to_string(failed) + "\" errors=\"" + (broken ? "1" : "0") + "\">\n";
    if (broken) {
      const std::string all = flows::to_string(suite.problems);
      xml += "    <testcase classname=\"" + escaped(suite.file) + "\" name=\"loads\">\n      " +
             "<error message=\"" + escaped(all) + "\"/>\n    </testcase>\n";
    }
    for (const auto& test : suite.tests) {
      xml += "    <testcase classname=\"" + escaped(suite.file) + "\" name=\"" +
             escaped(test.name) + "\" time=\"" + seconds(test.took) + "\">\n";
      for (const auto& failure : test.failures) xml += failure_of(suite.file, failure);
      if (!test.dialogue.empty()) {
        xml +=
            "      <system-out>" + escaped(text::joined(test.dialogue, "\n")) + "</system-out>\n";
      }
      xml += "    </testcase>\n";
    }
    xml += "  </testsuite>\n";
  }
  return xml + "</testsuites>\n";
}

}  // namespace conversed::flows::tools
