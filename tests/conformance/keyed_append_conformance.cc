// The behavior that all drivers share in an append under a key. Linked with one file for each
// driver that instantiates it.
#include "tests/conformance/keyed_append_conformance.h"

#include <cstdint>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace conversed::test {
namespace {

using namespace std::chrono_literals;
using queue::AppendKey;
using queue::Errc;

AppendKey key(std::string name, std::uint8_t body, std::string supersedes = "") {
  AppendKey key{"org/inject", std::move(name), {}, std::move(supersedes)};
  key.body_hash.fill(body);
  return key;
}

TEST_P(KeyedAppendConformance, TheSameKeyAndBodyAppendOnceEvenAfterReopening) {
  const auto first = append("id1", key("k", 1));
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_FALSE(first->repeated);
  EXPECT_EQ(first->id, "id1");
  for (int round = 0; round < 2; ++round) {
    const auto again = append("id2", key("k", 1));
    ASSERT_TRUE(again.has_value());
    EXPECT_TRUE(again->repeated);
    EXPECT_EQ(again->id, "id1");
    EXPECT_EQ(again->position, first->position);
    reopen();
  }
  EXPECT_EQ(records(), 1);
}

TEST_P(KeyedAppendConformance, AnotherBodyIsAConflictAndAnotherScopeIsNot) {
  ASSERT_TRUE(append("id1", key("k", 1)).has_value());
  EXPECT_EQ(append("id2", key("k", 2)).error().code, Errc::conflict);
  AppendKey elsewhere = key("k", 2);
  elsewhere.scope = "org/notify";
  EXPECT_FALSE(append("id3", elsewhere)->repeated);
  EXPECT_EQ(records(), 2);
}

TEST_P(KeyedAppendConformance, RacingAppendsOfOneKeyAppendOnce) {
  std::mutex mutex;
  std::set<std::string> ids;
  int fresh = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 8; ++thread) {
      threads.emplace_back([&, thread] {
        for (int n = 0; n < 50; ++n) {
          const auto done = append(std::to_string(thread * 50 + n), key("k", 1));
          const std::lock_guard lock(mutex);
          ids.insert(done->id);
          fresh += done->repeated ? 0 : 1;
        }
      });
    }
  }
  EXPECT_EQ(ids.size(), 1U);
  EXPECT_EQ(fresh, 1);
  EXPECT_EQ(records(), 1);
}

TEST_P(KeyedAppendConformance, AKeyIsFreeAfterItsLifetimeAndNotBefore) {
  ASSERT_TRUE(append("id1", key("k", 1)).has_value());
  fixture_->advance(24h - 1ms);
  EXPECT_TRUE(append("id2", key("k", 1))->repeated);
  fixture_->advance(1ms);
  const auto after = append("id3", key("k", 2));
  ASSERT_TRUE(after.has_value());
  EXPECT_FALSE(after->repeated);
  EXPECT_EQ(after->id, "id3");
}

TEST_P(KeyedAppendConformance, OnlyTheIdThatTheKeyStandsForIsSuperseded) {
  ASSERT_TRUE(append("id1", key("k", 1)).has_value());
  EXPECT_EQ(append("id2", key("k", 2, "other")).error().code, Errc::conflict);
  EXPECT_TRUE(append("id2", key("k", 1, "other"))->repeated);
  const auto replaced = append("id2", key("k", 2, "id1"));
  ASSERT_TRUE(replaced.has_value());
  EXPECT_FALSE(replaced->repeated);
  // A request to replace the first id is late now: the key stands for the second.
  EXPECT_EQ(append("id3", key("k", 2, "id1"))->id, "id2");
  EXPECT_EQ(records(), 2);
}

TEST_P(KeyedAppendConformance, ALookUpFindsTheKeysEventAndAppendsNothing) {
  const auto before = look_up(key("k", 1));
  ASSERT_TRUE(before.has_value()) << before.error().message;
  EXPECT_FALSE(before->has_value()) << "the key is unused";
  const auto first = append("id1", key("k", 1));
  ASSERT_TRUE(first.has_value());
  for (int round = 0; round < 2; ++round) {
    const auto found = look_up(key("k", 1));
    ASSERT_TRUE(found.has_value()) << found.error().message;
    ASSERT_TRUE(found->has_value());
    EXPECT_TRUE((*found)->repeated);
    EXPECT_EQ((*found)->id, "id1");
    EXPECT_EQ((*found)->position, first->position);
    reopen();
  }
  EXPECT_EQ(records(), 1);
}

TEST_P(KeyedAppendConformance, ALookUpTellsBodiesAndScopesApart) {
  ASSERT_TRUE(append("id1", key("k", 1)).has_value());
  const auto other_body = look_up(key("k", 2));
  ASSERT_FALSE(other_body.has_value());
  EXPECT_EQ(other_body.error().code, Errc::conflict);
  AppendKey elsewhere = key("k", 2);
  elsewhere.scope = "org/notify";
  EXPECT_FALSE(look_up(elsewhere)->has_value());
  EXPECT_FALSE(look_up(key("K", 1))->has_value()) << "keys are bytes";
}

TEST_P(KeyedAppendConformance, ALookUpFindsTheRecordThatSuperseded) {
  ASSERT_TRUE(append("id1", key("k", 1)).has_value());
  ASSERT_TRUE(append("id2", key("k", 2, "id1")).has_value());
  EXPECT_EQ(look_up(key("k", 2))->value().id, "id2");
  EXPECT_EQ(look_up(key("k", 1)).error().code, Errc::conflict);
}

TEST_P(KeyedAppendConformance, ALookUpFindsNothingOnceTheLifetimeIsOver) {
  ASSERT_TRUE(append("id1", key("k", 1)).has_value());
  fixture_->advance(24h - 1ms);
  EXPECT_TRUE(look_up(key("k", 1))->has_value());
  fixture_->advance(1ms);
  EXPECT_FALSE(look_up(key("k", 1))->has_value());
  EXPECT_FALSE(look_up(key("k", 2))->has_value())
      << "after the lifetime another body is no conflict";
}

// Looks each append up right after its callback, while others are being committed.
TEST_P(KeyedAppendConformance, AnAnsweredAppendIsFoundWhileOthersAppend) {
  constexpr int threads = 4;
  constexpr int each_appends = 50;
  std::mutex mutex;
  int found = 0;
  {
    std::vector<std::jthread> appenders;
    for (int thread = 0; thread < threads; ++thread) {
      appenders.emplace_back([&, thread] {
        for (int n = 0; n < each_appends; ++n) {
          const std::string id = std::to_string(thread) + "." + std::to_string(n);
          if (!append(id, key(id, 1))) continue;
          const auto seen = look_up(key(id, 1));
          const std::lock_guard lock(mutex);
          found += seen && *seen && (*seen)->id == id ? 1 : 0;
        }
      });
    }
  }
  EXPECT_EQ(found, threads * each_appends);
}

// Then the log may have two records of the event. Its claim lets only one have effects.
TEST_P(KeyedAppendConformance, DaemonsThatRaceForAKeyAgreeOnItsEvent) {
  const KeyedLog other = fixture_->open_at_another_daemon();
  if (!other.keyed) GTEST_SKIP() << "one daemon alone has this log";
  for (int round = 0; round < 50; ++round) {
    const std::string name = "k" + std::to_string(round);
    queue::Result<queue::KeyedAppended> theirs;
    {
      const std::jthread elsewhere([&] { theirs = append_to(*other.keyed, "b", key(name, 1)); });
      const auto ours = append("a", key(name, 1));
      ASSERT_TRUE(ours.has_value()) << ours.error().message;
      opened_.keyed->look_up(key(name, 1), [&](const Found& found) {
        ASSERT_TRUE(found && *found) << "an answered append is not kept";
        EXPECT_EQ((*found)->id, ours->id);
      });
    }
    ASSERT_TRUE(theirs.has_value()) << theirs.error().message;
    const auto again = append("c", key(name, 1));
    ASSERT_TRUE(again.has_value());
    EXPECT_TRUE(again->repeated);
    EXPECT_EQ(theirs->id, again->id);
    EXPECT_EQ(append_to(*other.keyed, "d", key(name, 2)).error().code, Errc::conflict);
  }
}

TEST_P(KeyedAppendConformance, AStoppedLogAnswersForNoKey) {
  ASSERT_TRUE(append("id1", key("k", 1)).has_value());
  opened_.log->stop();
  EXPECT_EQ(look_up(key("k", 1)).error().code, Errc::unavailable);
  EXPECT_EQ(append("id2", key("k2", 1)).error().code, Errc::unavailable);
}

}  // namespace
}  // namespace conversed::test
