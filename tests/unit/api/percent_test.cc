#include "api/http/percent.h"

#include <gtest/gtest.h>

namespace conversed::api {
namespace {

TEST(Percent, EscapesAreDecodedOnce) {
  EXPECT_EQ(percent_decode_path("/a%20b+e"), "/a b+e");
  EXPECT_EQ(percent_decode_path("/%C3%9F"), "/\xC3\x9F");
}

TEST(Percent, ASlashThatWasEncodedStaysInItsSegment) {
  EXPECT_EQ(percent_decode_path("/a%2Fc%2f%25d%252F"), "/a%2Fc%2F%25d%252F");
  EXPECT_EQ(percent_decode_segment("a%2Fc%2F%25d%252F"), "a/c/%d%2F");
  EXPECT_EQ(percent_decode_segment(""), "");
}

TEST(Percent, BrokenEscapesNulAndInvalidUtf8AreRefused) {
  for (const auto* text : {"/%", "/%4", "/%4x", "/%x4", "/%00", "/%FF", "/%C3", "/%C0%80",
                           "/%ED%A0%80", "/%F4%90%80%80"}) {
    EXPECT_FALSE(percent_decode_path(text)) << text;
    EXPECT_FALSE(parse_query(text)) << text;
  }
}

TEST(Percent, QueryKeepsOrderAndRepeats) {
  const HeaderList expected{{"a", "1"}, {"b", "x y z"}, {"a", ""}, {"c=", "d&="}, {"", "e=f"}};
  EXPECT_EQ(parse_query("a=1&&b=x%20y+z&a&c%3D=d%26%3D&=e=f&"), expected);
  EXPECT_EQ(parse_query(""), HeaderList{});
}

}  // namespace
}  // namespace conversed::api
