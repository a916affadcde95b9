#include "store/cluster/news.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace conversed::store {
namespace {

using Payloads = std::vector<std::string>;

News::Heard into(Payloads& payloads) {
  return [&payloads](std::string_view payload) { payloads.emplace_back(payload); };
}

TEST(News, ATopicIsHeardByThoseWhoAskForIt) {
  News news;
  Payloads outputs;
  Payloads replies;
  const auto first = news.subscribe("outputs", into(outputs));
  const auto second = news.subscribe("replies", into(replies));
  news.tell("outputs a b");
  news.tell("replies");
  news.tell("outputsx c");
  EXPECT_EQ(outputs, Payloads({"a b"}));
  EXPECT_EQ(replies, Payloads({""}));
}

TEST(News, WhatMayHaveBeenMissedIsToldToAll) {
  News news;
  Payloads outputs;
  Payloads replies;
  const auto first = news.subscribe("outputs", into(outputs));
  const auto second = news.subscribe("replies", into(replies));
  news.tell("");
  EXPECT_EQ(outputs, Payloads({""}));
  EXPECT_EQ(replies, Payloads({""}));
}

TEST(News, ASubscriptionThatHasEndedHearsNothing) {
  News news;
  Payloads payloads;
  {
    auto first = news.subscribe("outputs", into(payloads));
    const auto moved = std::move(first);
    news.tell("outputs a");
  }
  news.tell("outputs b");
  EXPECT_EQ(payloads, Payloads({"a"}));
}

}  // namespace
}  // namespace conversed::store
