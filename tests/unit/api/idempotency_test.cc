// Injects under an `Idempotency-Key`: one event and one answer, whatever changes between the
// requests.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/api/api_world.h"
#include "tests/unit/api/expect.h"

namespace conversed::api {
namespace {

using test::expect_problem;
using test::expect_reduced;
using test::header;
using test::message;
using test::World;

TEST(IdempotencyKey, TheSameInjectTwiceIsOneEventWithOneAnswer) {
  World world;
  const HeaderList key{{"idempotency-key", "k1"}};
  const auto first = world.inject(message(), key);
  const auto second = world.inject(message(), key);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(second.body, first.body);
  EXPECT_EQ(header(second, "X-Inject-Id"), header(first, "X-Inject-Id"));
  const auto event = world.read_events(1).at(0);
  EXPECT_EQ(event.claim, (model::Claim{model::Claim::Kind::keyed_event, event.id}));
  EXPECT_TRUE(world.log_is_empty());
  EXPECT_EQ(world.events->appended(), 1U);
}

TEST(IdempotencyKey, WithAnotherBodyIsAConflict) {
  World world;
  const HeaderList key{{"idempotency-key", "k1"}};
  EXPECT_EQ(world.inject(message(), key).status, 200);
  auto other = message();
  other["text"] = "bye";
  expect_problem(world.inject(other, key), 409);
}

TEST(IdempotencyKey, RefusedRequestsDoNotUseItUp) {
  World world;
  const HeaderList key{{"idempotency-key", "k1"}};
  expect_reduced(world.inject(message('9'), key), 404);
  EXPECT_EQ(world.inject(message(), key).status, 200);
}

TEST(IdempotencyKey, IsFreeAgainAfterADay) {
  World world;
  const HeaderList key{{"idempotency-key", "k1"}};
  const auto first = world.inject(message(), key);
  world.clock.advance(std::chrono::hours(24) + std::chrono::seconds(1));
  const auto second = world.inject(message(), key);
  EXPECT_NE(header(second, "X-Inject-Id"), header(first, "X-Inject-Id"));
}

TEST(IdempotencyKey, RepeatsDoNotCostQuota) {
  test::WorldSettings settings;
  settings.quota.injects_per_month = 2;
  World world(settings);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(world.inject(message(), {{"idempotency-key", "k1"}}).status, 200);
  }
  EXPECT_EQ(world.inject(message()).status, 200);
  expect_problem(world.inject(message()), 402);
}

// --- Keys whose session, inbox or quota has changed since

void expect_repeat_of(const Response& first, const Response& again) {
  EXPECT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(again.content_type, first.content_type);
  EXPECT_EQ(header(again, "X-Inject-Id"), header(first, "X-Inject-Id"));
}

TEST(IdempotencyKey, IsAnsweredAgainThoughTheInboxIsFull) {
  test::WorldSettings settings;
  settings.limits.inbox = 2;
  World world(settings);
  const HeaderList key{{"idempotency-key", "k1"}};
  const auto first = world.inject(message(), key);
  ASSERT_EQ(first.status, 200);
  world.busy.set(world.session_key(), 2);
  expect_repeat_of(first, world.inject(message(), key));
  expect_problem(world.inject(message(), {{"idempotency-key", "k2"}}), 429);
  auto other = message();
  other["text"] = "bye";
  expect_problem(world.inject(other, key), 409);
  EXPECT_EQ(world.read_events(1).size(), 1U);
  EXPECT_TRUE(world.log_is_empty());
  world.busy.set(world.session_key(), 0);
  EXPECT_EQ(world.inject(message(), {{"idempotency-key", "k2"}}).status, 200)
      << "a refusal does not use a key up";
}

TEST(IdempotencyKey, IsAnsweredAgainThoughTheConversationIsOver) {
  World world;
  world.put_session('b');
  const HeaderList key{{"idempotency-key", "k1"}};
  const auto first = world.inject(message('b'), key);
  ASSERT_EQ(first.status, 200);
  world.clock.advance(std::chrono::hours(1));
  expect_repeat_of(first, world.inject(message('b'), key));
  expect_problem(world.inject(message('b'), {{"idempotency-key", "k2"}}), 409);
  world.clock.advance(std::chrono::hours(23));
  expect_problem(world.inject(message('b'), key), 409);  // the key has expired after a day
  EXPECT_EQ(world.read_events(1).size(), 1U);
  EXPECT_TRUE(world.log_is_empty());
}

TEST(IdempotencyKey, IsAnsweredAgainThoughTheQuotaIsUsedUp) {
  test::WorldSettings settings;
  settings.quota.injects_per_month = 1;
  World world(settings);
  const HeaderList key{{"idempotency-key", "k1"}};
  const auto first = world.inject(message(), key);
  ASSERT_EQ(first.status, 200);
  for (int i = 0; i < 3; ++i) expect_repeat_of(first, world.inject(message(), key));
  expect_problem(world.inject(message(), {{"idempotency-key", "k2"}}), 402);
  expect_problem(world.inject(message()), 402);
}

TEST(IdempotencyKey, AStoppedLogIsReportedBeforeAFullInbox) {
  test::WorldSettings settings;
  settings.limits.inbox = 2;
  World world(settings);
  world.busy.set(world.session_key(), 2);
  world.log->stop();
  expect_problem(world.inject(message(), {{"idempotency-key", "k1"}}), 503);
  expect_problem(world.inject(message()), 429);
}

TEST(IdempotencyKey, HasToBePrintableAndNotTooLong) {
  World world;
  for (const std::string& key : {std::string(), std::string(256, 'x'), std::string("a\xC3\xA4")}) {
    expect_reduced(world.inject(message(), {{"idempotency-key", key}}), 400);
  }
  EXPECT_EQ(world.inject(message(), {{"idempotency-key", std::string(255, 'x')}}).status, 200);
}

}  // namespace
}  // namespace conversed::api
