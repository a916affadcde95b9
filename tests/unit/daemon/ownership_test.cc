// Ownership of partitions, and its effect on the Caller and the Deliverer.
#include "daemon/cluster/ownership.h"

#include "daemon/delivery/deliverer.h"
#include "daemon/timers/timer_clock.h"
#include "queue/log.h"
#include "store/shards/backlog.h"
#include "tests/unit/daemon/caller_world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using tests::HttpReceiver;

constexpr std::int32_t partitions = 8;

std::int32_t partition_of(const model::SessionKey& key) {
  return queue::partition_of(key.encode(), partitions);
}

TEST(Ownership, OfEverythingItNeedsNoPartitions) {
  const Ownership ownership(Ownership::Of::everything);
  EXPECT_FALSE(ownership.is_shared());
  EXPECT_TRUE(ownership.owns({"project", "web", "ann", "s"}));
  EXPECT_TRUE(ownership.partitions().empty());
}

TEST(Ownership, EachTakeoverOfAPartitionHasItsOwnGeneration) {
  const model::SessionKey ann{"project", "web", "ann", "s"};
  const std::vector<std::int32_t> hers{partition_of(ann)};
  const std::vector<std::int32_t> other{(hers[0] + 1) % partitions};
  Ownership ownership(Ownership::Of::partitions);
  EXPECT_TRUE(ownership.is_shared());
  EXPECT_FALSE(ownership.owns(ann)) << "no partition has been taken yet";
  ownership.begin(partitions);
  EXPECT_FALSE(ownership.owns(ann));
  ownership.take(hers);
  const auto generation = ownership.generation_of(ann);
  EXPECT_NE(generation, 0U);
  ownership.take(other);
  EXPECT_EQ(ownership.generation_of(ann), generation);
  ownership.give_up(hers);
  EXPECT_EQ(ownership.generation_of(ann), 0U);
  EXPECT_EQ(ownership.partitions(), other);
  ownership.take(hers);
  EXPECT_NE(ownership.generation_of(ann), 0U);
  EXPECT_NE(ownership.generation_of(ann), generation);
  const std::vector<std::int32_t> unknown{partitions, -1};
  ownership.take(unknown);
  EXPECT_EQ(ownership.partitions().size(), 2U);
}

TEST(OwnersLook, IsMoreFrequentForAWhileAfterAChangeOfOwners) {
  const OwnersLook::Steady begin{1h};
  OwnersLook looks(10s);
  EXPECT_EQ(looks.next(begin), begin + 10s);
  looks.owners_changed(begin);
  EXPECT_EQ(looks.next(begin), begin + 3s);
  EXPECT_EQ(looks.next(begin + 29s), begin + 32s);
  EXPECT_EQ(looks.next(begin + 30s), begin + 40s);
  OwnersLook eager(1s);
  eager.owners_changed(begin);
  EXPECT_EQ(eager.next(begin), begin + 1s);
}

// Two sessions in different partitions.
class TwoOwners {
 public:
  TwoOwners() { ownership.begin(partitions); }
  void take(const model::SessionKey& key) {
    const std::vector<std::int32_t> its{partition_of(key)};
    ownership.take(its);
  }
  void give_up(const model::SessionKey& key) {
    const std::vector<std::int32_t> its{partition_of(key)};
    ownership.give_up(its);
  }
  Ownership ownership{Ownership::Of::partitions};
};

class CallerOfSome : public CallerTest {
 protected:
  void start_among_others(std::chrono::milliseconds look_interval = 1h) {
    stop();
    ownership_ = &owners_.ownership;
    CallerSettings settings;
    settings.look_interval = look_interval;
    start(settings);
    for (int n = 0; partition_of(key("user-" + other_)) == partition_of(key("user-mine")); ++n) {
      other_ = "other" + std::to_string(n);
    }
  }
  std::size_t requests_of(const std::string& id) {
    std::size_t count = 0;
    for (const auto& request : receiver_.requests()) {
      if (request.headers.at("idempotency-key") == "idem-" + id) ++count;
    }
    return count;
  }

  TwoOwners owners_;
  std::string other_ = "other";
};

TEST_F(CallerOfSome, CallsAreMadeByTheOwner) {
  start_among_others();
  commit_call(call(other_));
  commit_call(call("mine"));
  caller_->offer(project(), store::target_of(call(other_)));
  owners_.take(key("user-mine"));
  caller_->ownership_changed();
  ASSERT_TRUE(sink_.wait_for(1));
  ASSERT_TRUE(eventually([&] { return caller_->idle(); }));
  EXPECT_EQ(requests_of("mine"), 1U);
  EXPECT_EQ(requests_of(other_), 0U);
  owners_.take(key("user-" + other_));
  caller_->ownership_changed();
  ASSERT_TRUE(sink_.wait_for(2));
  ASSERT_TRUE(eventually([&] { return caller_->idle(); }));
  EXPECT_EQ(requests_of("mine"), 1U);
  EXPECT_EQ(requests_of(other_), 1U);
}

TEST_F(CallerOfSome, CallsOfALostPartitionAreNotRetried) {
  start_among_others();
  owners_.take(key("user-mine"));
  owners_.take(key("user-" + other_));
  receiver_.set_handler([](const auto& request) {
    const bool mine = request.headers.at("idempotency-key") == "idem-mine";
    return HttpReceiver::Answer{.status = mine ? 503 : 200};
  });
  auto mine = call("mine");
  mine.http->retries = 5;
  offer(mine);
  ASSERT_TRUE(receiver_.wait_for(1));
  owners_.give_up(key("user-mine"));
  caller_->ownership_changed();
  EXPECT_EQ(result_of(call(other_)).status, 200);
  ASSERT_TRUE(eventually([&] {
    clock_.advance(1s);
    caller_->wake();
    return caller_->idle();
  }));
  EXPECT_EQ(requests_of("mine"), 1U);
}

// The other daemon did not know yet that it had lost the session.
TEST_F(CallerOfSome, CallsThatAnotherDaemonLeftAreFound) {
  start_among_others(1ms);
  owners_.take(key("user-mine"));
  caller_->ownership_changed();
  ASSERT_TRUE(eventually([&] { return caller_->idle(); }));
  commit_call(call("mine"));
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.events().at(0).id, "mine-r");
}

class DelivererOfSome : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    import({{ "web", receiver_.url("/hook") }});
    ASSERT_TRUE(http_.start());
    for (int n = 0; partition_of(key(other_)) == partition_of(key("mine")); ++n) {
      other_ = "other" + std::to_string(n);
    }
  }
  void TearDown() override {
    if (deliverer_) deliverer_->stop();
    http_.stop();
  }
  void start(std::chrono::milliseconds look_interval = 1h) {
    DelivererSettings settings;
    settings.look_interval = look_interval;
    deliverer_ = std::make_unique<Deliverer>(settings, store_->assets(), store_->first(), http_,
                                             clock_, timer_clock_, metrics_, owners_.ownership);
    ASSERT_TRUE(deliverer_->start());
    settle();
  }
  void settle() {
    ASSERT_TRUE(eventually([&] { return deliverer_->idle(); }));
  }
  std::vector<std::string> received() {
    std::vector<std::string> texts;
    for (const auto& request : receiver_.requests()) {
      texts.push_back(nlohmann::json::parse(request.body)["output"]["text"]);
    }
    return texts;
  }

  using Texts = std::vector<std::string>;
  HttpReceiver receiver_;
  Metrics metrics_;
  HttpClient http_{HttpClientSettings{}, loopback_egress()};
  TwoOwners owners_;
  std::string other_ = "other";
  TimerClock timer_clock_{clock_, [this] { return clock_.now().time_since_epoch(); }};
  std::unique_ptr<Deliverer> deliverer_;
};

TEST_F(DelivererOfSome, OutputsAreSentByTheOwner) {
  commit_now(turn(key(other_), {"not yet"}));
  commit_now(turn(key("mine"), {"at once"}));
  start();
  owners_.take(key("mine"));
  deliverer_->ownership_changed();
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  EXPECT_EQ(received(), (Texts{"at once"}));
  owners_.take(key(other_));
  deliverer_->ownership_changed();
  ASSERT_TRUE(receiver_.wait_for(2));
  settle();
  EXPECT_EQ(received(), (Texts{"at once", "not yet"}));
}

TEST_F(DelivererOfSome, OutputsOfALostPartitionAreNotSent) {
  start();
  owners_.take(key("mine"));
  owners_.take(key(other_));
  deliverer_->ownership_changed();
  settle();
  owners_.give_up(key("mine"));
  deliverer_->ownership_changed();
  // The outputs of a Turn that was in hand when the partition went.
  for (const auto& commit : {turn(key("mine"), {"for another"}), turn(key(other_), {"ours"})}) {
    commit_now(commit, [&](const auto& done) { deliverer_->offer(done, false); });
  }
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  EXPECT_EQ(received(), (Texts{"ours"}));
  flush();
  EXPECT_EQ(store::read_backlog(store_->shards()).value().deliveries, 1);
}

TEST_F(DelivererOfSome, RetryAndResumeAreForTheOwner) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 503}; });
  start();
  owners_.take(key("mine"));
  for (const auto& user : {std::string("mine"), other_}) {
    const auto commit = turn(key(user), {user});
    commit_now(commit, [&](const auto& done) { deliverer_->offer(done, false); });
  }
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  deliverer_->retry(key(other_));
  deliverer_->resume(key(other_).endpoint_id);
  settle();
  EXPECT_EQ(received(), Texts{"mine"});
  const auto output = store_->first().outbox().outputs(key("mine"), 0, 1)->front();
  ASSERT_TRUE(store_->first().deliveries().retry(
      {.output_id = output.id, .key = key("mine"), .seq = output.seq}));
  deliverer_->retry(key("mine"));
  ASSERT_TRUE(receiver_.wait_for(2));
  EXPECT_EQ(received(), (Texts{"mine", "mine"}));
}

TEST_F(DelivererOfSome, PauseEndsWhenAnotherDaemonHasEndedIt) {
  const auto endpoint_id = key("mine").endpoint_id;
  commit_now(turn(key("mine"), {"hello"}));
  store_->first().endpoint_health().failed({.endpoint_id = endpoint_id,
                                            .failing_since = clock_.now(),
                                            .last_at = clock_.now(),
                                            .paused_since = clock_.now(),
                                            .next_probe = clock_.now() + 1h});
  flush();
  owners_.take(key("mine"));
  start(1ms);
  EXPECT_EQ(received(), Texts{});
  store_->first().endpoint_health().works(endpoint_id, clock_.now());
  ASSERT_TRUE(receiver_.wait_for(1));
  EXPECT_EQ(received(), Texts{"hello"});
}

TEST_F(DelivererOfSome, OutputsThatAnotherDaemonLeftGoFirst) {
  start(1ms);
  owners_.take(key("mine"));
  deliverer_->ownership_changed();
  settle();
  commit_now(turn(key("mine"), {"left"}));
  ASSERT_TRUE(receiver_.wait_for(1));
  EXPECT_EQ(received(), (Texts{"left"}));
}

// The text in the store differs from the text that is handed over.
TEST_F(DelivererOfSome, OutputsWhoseOlderOnesAreKnownAreNotRead) {
  start();
  owners_.take(key("mine"));
  deliverer_->ownership_changed();
  settle();
  for (const bool older_are_known : {false, true}) {
    auto commit = turn(key("mine"), {"stored"});
    commit.unseen_until = Deliverer::SteadyClock::now();
    commit_now(commit);
    commit.outputs[0].text = "handed over";
    deliverer_->offer(commit, older_are_known);
    settle();
  }
  EXPECT_EQ(received(), (Texts{"stored", "handed over"}));
}

// No notification of the change of owners has come yet.
TEST_F(DelivererOfSome, OutputsOfAnEarlierOwnerGoBeforeThoseThatAreHandedOver) {
  start();
  owners_.take(key("mine"));
  deliverer_->ownership_changed();
  commit_now(turn(key("mine"), {"first"}),
             [&](const auto& done) { deliverer_->offer(done, false); });
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  const auto offer_next = [&](const auto& done) { deliverer_->offer(done, true); };
  owners_.give_up(key("mine"));
  commit_now(turn(key("mine"), {"left"}), offer_next);
  owners_.take(key("mine"));
  commit_now(turn(key("mine"), {"new"}), offer_next);
  ASSERT_TRUE(receiver_.wait_for(3));
  EXPECT_EQ(received(), (Texts{"first", "left", "new"}));
}

}  // namespace
}  // namespace conversed::daemon
