#include "store/model/keyed_hash.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>

#include "tests/support/colliding_keys.h"

namespace conversed::model {
namespace {

// The test vector of the SipHash paper and of its authors' program. The key is 00 01 ... 0f. The
// text has as many bytes, counted from 00.
TEST(KeyedHash, IsSipHash) {
  const HashKey key{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string text;
  const auto next = [&](std::size_t size) {
    while (text.size() < size) text.push_back(static_cast<char>(text.size()));
    return sip_hash(text, key);
  };
  EXPECT_EQ(next(0), 0x726fdb47dd0e0e31U);
  EXPECT_EQ(next(1), 0x74f839c593dc67fdU);
  EXPECT_EQ(next(7), 0xab0200f58b01d137U);
  EXPECT_EQ(next(8), 0x93f5f5799a932462U);
  EXPECT_EQ(next(15), 0xa129ca6149be45e5U);
}

TEST(KeyedHash, KeysThatCollideForTheStandardHashDoNotForThisOne) {
  std::set<std::size_t> standard;
  std::set<std::size_t> keyed;
  for (const auto& text : colliding_keys(1'000)) {
    standard.insert(std::hash<std::string_view>{}(text));
    keyed.insert(KeyedHash{}(text));
  }
  EXPECT_EQ(standard.size(), 1U);
  EXPECT_EQ(keyed.size(), 1'000U);
}

TEST(KeyedHash, AnotherKeyIsAnotherHash) {
  EXPECT_NE(sip_hash("ann", {1, 2}), sip_hash("ann", {1, 3}));
}

}  // namespace
}  // namespace conversed::model
