#include "store/text/near.h"

#include <gtest/gtest.h>

#include <array>

namespace conversed::text {
namespace {

TEST(EditDistance, CountsASwapAsOne) {
  EXPECT_EQ(edits_between("port", "port"), 0U);
  EXPECT_EQ(edits_between("port", "prot"), 1U);
  EXPECT_EQ(edits_between("port", "ports"), 1U);
  EXPECT_EQ(edits_between("", "port"), 4U);
  EXPECT_EQ(edits_between("workers", "roles"), 4U);
}

TEST(Nearest, IsTheWordThatFewestEditsMake) {
  constexpr std::array<std::string_view, 3> known{"text", "type", "timeout"};
  EXPECT_EQ(nearest("txt", known), "text");
  EXPECT_EQ(nearest("TPYE", known), "type");
  EXPECT_EQ(nearest("foo", known), "");
  EXPECT_EQ(nearest(std::string(101, 'x'), known), "");
}

}  // namespace
}  // namespace conversed::text
