#include "store/model/ids.h"

#include <gtest/gtest.h>

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
