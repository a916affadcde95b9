#include "store/yaml/writer.h"

#include <gtest/gtest.h>

namespace conversed::yaml {
namespace {

using nlohmann::ordered_json;

TEST(YamlWriter, QuotesTextsThatAnotherReaderWouldTakeForOtherTypes) {
  const ordered_json value{{"on", "yes"},
                           {"200", {{"empty", ordered_json::object()}}},
                           {"list", ordered_json::array({1, {{"a", nullptr}}})}};
  EXPECT_EQ(write(value),
            "\"on\": \"yes\"\n"
            "\"200\":\n"
            "  empty: {}\n"
            "list:\n"
            "  - 1\n"
            "  - a: null\n");
}

}  // namespace
}  // namespace conversed::yaml
