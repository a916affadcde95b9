#include "store/model/ids.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>

namespace conversed::model {
namespace {

TEST(Ids, AreDistinctAndOfTheDocumentedShape) {
  std::set<std::string> seen;
  std::map<char, int> used;
  for (int i = 0; i < 2000; ++i) {
    const auto id = new_id();
    EXPECT_TRUE(is_id(id)) << id;
    for (const char c : id) ++used[c];
    seen.insert(id);
  }
  EXPECT_EQ(seen.size(), 2000U);
  EXPECT_EQ(used.size(), 36U) << "every character of the alphabet occurs";
}

TEST(Ids, SortByTheTimeAtWhichTheyWereMade) {
  std::string last;
  for (const std::int64_t ms : {0LL, 1LL, 35LL, 36LL, 1'700'000'000'000LL, 1'700'000'000'001LL,
                                4'102'444'800'000LL, 100'000'000'000'000LL}) {
    const auto id = new_id(from_unix_ms(ms));
    EXPECT_TRUE(is_id(id)) << id;
    EXPECT_GT(id, last) << ms;
    EXPECT_GT(id, id_prefix(from_unix_ms(ms))) << ms;
    EXPECT_LT(id, id_prefix(from_unix_ms(ms + 1))) << ms;
    last = id;
  }
  EXPECT_EQ(id_prefix(from_unix_ms(-1)), id_prefix(from_unix_ms(0)));
}

TEST(Ids, NumbersAreInTheOrderOfTheirIds) {
  EXPECT_EQ(id_number("00000000000z000000000000"), 35);
  EXPECT_EQ(id_number("000000001000zzzzzzzzzzzz"), 36 * 36 * 36);
  EXPECT_EQ(id_number("zzzzzzzzzzzzzzzzzzzzzzzz"), 4'738'381'338'321'616'895);
  for (const std::int64_t ms : {0LL, 35LL, 36LL, 1'800'000'000'000LL, 100'000'000'000'000LL}) {
    const auto time = from_unix_ms(ms);
    EXPECT_EQ(id_number(time), id_number(id_prefix(time) + "000000000000000")) << ms;
    EXPECT_LE(id_number(time), id_number(new_id(time))) << ms;
    EXPECT_GT(id_number(from_unix_ms(ms + 1)), id_number(new_id(time))) << ms;
  }
  EXPECT_EQ(id_number(from_unix_ms(-1)), 0);
}

TEST(Ids, TraceIdsSortByTheTimeAtWhichTheyWereMade) {
  const auto before = SystemClock().now();
  const auto id = new_trace_id();
  const auto made = from_unix_ms(std::stoll(id.substr(0, 12), nullptr, 16));
  EXPECT_GE(made, before);
  EXPECT_LE(made, SystemClock().now());
  EXPECT_NE(id.substr(12), new_trace_id().substr(12));
}

TEST(Ids, OtherTextsAreNoIds) {
  const std::string good(id_length, 'a');
  EXPECT_TRUE(is_id(good));
  EXPECT_FALSE(is_id(good + "a"));
  EXPECT_FALSE(is_id(good.substr(1)));
  EXPECT_FALSE(is_id(""));
  for (const char c : {'A', '-', ' ', '\0', '{', '/', ':'}) {
    auto bad = good;
    bad[7] = c;
    EXPECT_FALSE(is_id(bad)) << c;
  }
}

TEST(Ids, TraceIdsAndUrlTokensAreLowerHex) {
  EXPECT_EQ(new_trace_id().size(), 32U);
  EXPECT_EQ(new_trace_id().find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_TRUE(is_url_token(random_hex(url_token_length / 2)));
  EXPECT_FALSE(is_url_token(std::string(url_token_length, 'G')));
  EXPECT_FALSE(is_url_token(std::string(url_token_length, 'A')));
}

}  // namespace
}  // namespace conversed::model
