#include "store/cluster/notifications.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace conversed::store {
namespace {

using Payloads = std::vector<std::string>;

Notifications::Heard into(Payloads& payloads) {
  return [&payloads](std::string_view payload) { payloads.emplace_back(payload); };
}

TEST(Notifications, ATopicIsHeardByItsSubscribers) {
  Notifications notifications;
  Payloads outputs;
  Payloads replies;
  const auto first = notifications.subscribe("outputs", into(outputs));
  const auto second = notifications.subscribe("replies", into(replies));
  notifications.tell("outputs a b");
  notifications.tell("replies");
  notifications.tell("outputsx c");
  EXPECT_EQ(outputs, Payloads({"a b"}));
  EXPECT_EQ(replies, Payloads({""}));
}

TEST(Notifications, AllSubscribersHearOfAPossibleLoss) {
  Notifications notifications;
  Payloads outputs;
  Payloads replies;
  const auto first = notifications.subscribe("outputs", into(outputs));
  const auto second = notifications.subscribe("replies", into(replies));
  notifications.tell("");
  EXPECT_EQ(outputs, Payloads({""}));
  EXPECT_EQ(replies, Payloads({""}));
}

TEST(Notifications, ASubscriptionThatHasEndedHearsNothing) {
  Notifications notifications;
  Payloads payloads;
  {
    auto first = notifications.subscribe("outputs", into(payloads));
    const auto moved = std::move(first);
    notifications.tell("outputs a");
  }
  notifications.tell("outputs b");
  EXPECT_EQ(payloads, Payloads({"a"}));
}

}  // namespace
}  // namespace conversed::store
