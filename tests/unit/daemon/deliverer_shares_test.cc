// Endpoints that hang, are slow or fail, beside others, and clocks that are set.
#include "store/shards/backlog.h"
#include "tests/unit/daemon/deliverer_world.h"

namespace conversed::daemon {
namespace {

// Hung Endpoints with several sessions each.
struct Tarpit {
  HttpReceiver receiver{
      [](const auto&) { return HttpReceiver::Answer{.then = HttpReceiver::Then::silence}; }};
  std::vector<std::pair<std::string, std::string>> endpoints(int count) {
    std::vector<std::pair<std::string, std::string>> all;
    for (int i = 0; i < count; ++i) {
      all.emplace_back("hung" + std::to_string(i), receiver.url("/" + std::to_string(i)));
    }
    return all;
  }
};

TEST_F(DelivererTest, EndpointThatHasNotAnsweredHasOneConnection) {
  Tarpit tarpit;
  import({{"web", receiver_.url()}, { "hanging", tarpit.receiver.url() }});
  stop();
  deliverer_.reset();
  start({.connections = 8, .drain_timeout = 0ms});
  for (int i = 0; i < 30; ++i) say(key("u" + std::to_string(i), "hanging"), {"x"});
  ASSERT_TRUE(tarpit.receiver.wait_for(1));
  for (int i = 0; i < 10; ++i) say(key("v" + std::to_string(i)), {"y"});
  EXPECT_TRUE(receiver_.wait_for(10));
  EXPECT_EQ(tarpit.receiver.count(), 1U);
}

TEST_F(DelivererTest, SixteenHungEndpointsHoldUpNoGoodOneOfTheirProject) {
  Tarpit tarpit;
  auto endpoints = tarpit.endpoints(16);
  endpoints.emplace_back("web", receiver_.url());
  import(endpoints);
  stop();
  deliverer_.reset();
  start({.timeout = 10min, .drain_timeout = 0ms});
  for (int i = 0; i < 16; ++i) {
    for (const auto* user : {"ann", "bob", "cem"})
      say(key(user, "hung" + std::to_string(i)), {"x"});
  }
  for (int i = 0; i < 20; ++i) {
    say(key("ann"), {std::to_string(i)});
    ASSERT_TRUE(receiver_.wait_for(static_cast<std::size_t>(i) + 1));
  }
  EXPECT_LE(tarpit.receiver.count(), 16U);
}

TEST_F(DelivererTest, HungEndpointsOfAProjectHoldUpNoOtherProject) {
  Tarpit tarpit;
  model::Bundle other;
  other.project_name = "Other";
  other.locales = {"en"};
  other.flows.push_back({"Flow", {{"name", "Flow"}, {"nodes", json::array()}}});
  auto& endpoint = other.endpoints.emplace_back();
  endpoint.name = "web";
  endpoint.flow = "Flow";
  endpoint.webhook.push_back({receiver_.url(), signing_secret, "${SECRET}"});
  const auto report = store_->assets().import_bundle(organisation_, other).value();
  const model::SessionKey theirs{report["project"]["_id"], report["endpoints"][0]["_id"], "ann",
                                 "s"};
  import(tarpit.endpoints(40));
  stop();
  deliverer_.reset();
  start({.timeout = 10min, .drain_timeout = 0ms});
  for (int i = 0; i < 40; ++i) say(key("ann", "hung" + std::to_string(i)), {"x"});
  // Endpoints without an answer begin a few at a time. Until these end, no other begins.
  ASSERT_TRUE(tarpit.receiver.wait_for(20));
  for (int i = 0; i < 20; ++i) {
    say(theirs, {std::to_string(i)});
    ASSERT_TRUE(receiver_.wait_for(static_cast<std::size_t>(i) + 1));
  }
  EXPECT_EQ(tarpit.receiver.count(), 20U) << "five eighths of 32";
}

TEST_F(DelivererTest, EndpointThatFailsGetsOneTryAtATimeUntilItAnswers) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 503}; });
  for (int i = 0; i < 200; ++i) say(key("user" + std::to_string(i)), {"hello"});
  settle();
  EXPECT_EQ(receiver_.count(), 3U) << "three failures put the Endpoint off";
  for (std::size_t tries = 4; tries < 8; ++tries) {
    clock_.advance(2min);
    deliverer_->wake();
    ASSERT_TRUE(receiver_.wait_for(tries));
    settle();
    EXPECT_EQ(receiver_.count(), tries);
  }
  receiver_.set_handler({});
  clock_.advance(10min);
  deliverer_->wake();
  ASSERT_TRUE(eventually([&] { return pending() == 0; }));
  EXPECT_EQ(receiver_.count(), 207U);
}

TEST_F(DelivererTest, RetriedSessionGoesBeforeThoseThatAreDueLonger) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 503}; });
  for (const char* user : {"ann", "bob", "cid", "dan"}) {
    say(key(user), {"hello"});
    settle();
  }
  ASSERT_EQ(receiver_.count(), 3U) << "three failures put the Endpoint off";
  flush();
  const auto output = store_->first().outbox().outputs(key("dan"), 0, 1)->front();
  for (std::size_t tries = 4; tries < 6; ++tries) {
    ASSERT_TRUE(store_->first().deliveries().retry(
        {.output_id = output.id, .key = key("dan"), .seq = output.seq}));
    deliverer_->retry(key("dan"));
    ASSERT_TRUE(receiver_.wait_for(tries));
    settle();
    EXPECT_EQ(json::parse(receiver_.requests().back().body)["userId"], "dan");
    EXPECT_EQ(receiver_.count(), tries) << "one try";
    clock_.advance(1s);
  }
}

TEST_F(DelivererTest, TellsTheNextTryOfAnEndpointThatIsPutOff) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 503}; });
  EXPECT_FALSE(deliverer_->sending({key("cid")}).front().not_before);
  for (const char* user : {"ann", "bob"}) say(key(user), {"hello"});
  settle();
  EXPECT_FALSE(deliverer_->sending({key("cid")}).front().not_before)
      << "two failures put no Endpoint off";
  say(key("cid"), {"hello"});
  settle();
  const auto until = deliverer_->sending({key("dan")}).front().not_before;
  ASSERT_TRUE(until);
  EXPECT_GE(*until, clock_.now() + 1s);
  say(key("dan"), {"hello"});
  settle();
  EXPECT_EQ(receiver_.count(), 3U);
  receiver_.set_handler({});
  clock_.advance(2s);
  deliverer_->wake();
  ASSERT_TRUE(eventually([&] { return pending() == 0; }));
  EXPECT_FALSE(deliverer_->sending({key("dan")}).front().not_before);
}

TEST(RecentPosts, CountTheLastFiveMinutes) {
  const RecentPosts::Time begin{};
  RecentPosts posts(begin);
  EXPECT_EQ(posts.of("web", begin).time, 0s);
  posts.add("web", true, begin + 1s);
  posts.add("web", false, begin + 30s);
  posts.add("other", false, begin + 30s);
  EXPECT_EQ(posts.of("web", begin + 60s).posts, 2);
  EXPECT_EQ(posts.of("web", begin + 60s).failed, 1);
  EXPECT_EQ(posts.of("web", begin + 60s).time, 60s);
  EXPECT_EQ(posts.of("web", begin + 299s).posts, 2);
  const auto later = posts.of("web", begin + 305s);
  EXPECT_EQ(later.posts, 1);
  EXPECT_EQ(later.failed, 0);
  EXPECT_EQ(later.time, 295s) << "back to the begin of the first slice";
  posts.add("web", false, begin + 330s);
  EXPECT_EQ(posts.of("web", begin + 331s).posts, 1) << "in the place of an older slice";
  EXPECT_EQ(posts.of("nothing", begin + 331s).posts, 0);
}

TEST_F(DelivererTest, CountsThePostsOfAnEndpoint) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 503}; });
  say(key("ann"), {"hello"});
  settle();
  receiver_.set_handler({});
  say(key("bob"), {"hello"});
  settle();
  const auto count = deliverer_->recent_posts(key("ann").endpoint_id);
  EXPECT_EQ(count.posts, 2);
  EXPECT_EQ(count.failed, 1);
}

class PausedWebhook : public DelivererTest {
 protected:
  void SetUp() override {
    DelivererTest::SetUp();
    receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 503}; });
  }
  // The webhook fails for an hour, and one try more pauses it.
  void fail_for_an_hour() {
    say(key("ann"), {"one", "two"});
    ASSERT_TRUE(receiver_.wait_for(1));
    settle();
    clock_.advance(1h);
    deliverer_->wake();
    ASSERT_TRUE(receiver_.wait_for(2));
    settle();
  }
  // Lets time pass, and expects one more request.
  void expect_try_after(std::chrono::milliseconds time) {
    const auto before = receiver_.count();
    clock_.advance(time);
    deliverer_->wake();
    ASSERT_TRUE(receiver_.wait_for(before + 1));
    settle();
    EXPECT_EQ(receiver_.count(), before + 1);
  }
  std::optional<store::EndpointFailure> health() {
    flush();
    return *store_->first().endpoint_health().find(key("ann").endpoint_id);
  }
};

TEST_F(PausedWebhook, HasARowFromTheFirstFailureToTheNextSuccess) {
  say(key("ann"), {"one"});
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  ASSERT_TRUE(health());
  EXPECT_EQ(health()->last_status, 503);
  EXPECT_EQ(health()->failures, 1);
  EXPECT_FALSE(health()->paused());
  receiver_.set_handler({});
  to_next_try();
  ASSERT_TRUE(eventually([&] { return pending() == 0; }));
  EXPECT_FALSE(health());
}

TEST_F(PausedWebhook, IsProbedByOneTryAMinute) {
  fail_for_an_hour();
  EXPECT_TRUE(health()->paused());
  for (int i = 0; i < 20; ++i) say(key("user" + std::to_string(i)), {"hello"});
  settle();
  EXPECT_EQ(receiver_.count(), 2U) << "the outputs of other sessions wait, too";
  EXPECT_EQ(deliverer_->sending({key("user1")}).front().not_before, clock_.now() + 1min);
  for (int i = 0; i < 5; ++i) expect_try_after(1min);
  restart();
  settle();
  expect_try_after(1min);
  receiver_.set_handler({});
  clock_.advance(1min);
  deliverer_->wake();
  ASSERT_TRUE(eventually([&] { return pending() == 0; }));
  EXPECT_FALSE(health()->paused());
}

TEST_F(PausedWebhook, LosesNoTimeOfRetries) {
  fail_for_an_hour();
  clock_.advance(72h);
  deliverer_->wake();
  ASSERT_TRUE(receiver_.wait_for(3));
  settle();
  EXPECT_EQ(pending(), 2) << "its outputs are older than retry_for, but were paused";
  ASSERT_TRUE(store_->first().endpoint_health().resume(key("ann").endpoint_id));
  deliverer_->resume(key("ann").endpoint_id);
  ASSERT_TRUE(receiver_.wait_for(4));
  settle();
  EXPECT_EQ(pending(), 2) << "the time of the pause still does not count";
  clock_.advance(23h);
  deliverer_->wake();
  ASSERT_TRUE(eventually([&] {
    const auto left = pending();  // each is given up by a commit of its own
    return left < 2 && store::read_backlog(store_->shards()).value().dead_letters == 2 - left;
  }));
}

TEST_F(PausedWebhook, IsTriedAtOnceWhenAnOperatorAsks) {
  fail_for_an_hour();
  const auto output = store_->first().outbox().outputs(key("ann"), 0, 1)->front();
  ASSERT_TRUE(store_->first().deliveries().retry(
      {.output_id = output.id, .key = key("ann"), .seq = output.seq}));
  deliverer_->retry(key("ann"));
  ASSERT_TRUE(receiver_.wait_for(3));
  settle();
  EXPECT_TRUE(health()->paused());
}

TEST_F(PausedWebhook, GetsOneTryThoughItHasAnsweredAndOneSessionHasFailed) {
  receiver_.set_handler({});
  say(key("ann"), {"accepted"});
  ASSERT_TRUE(eventually([&] { return pending() == 0; }));
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 503}; });
  say(key("ann"), {"refused"});
  ASSERT_TRUE(receiver_.wait_for(2));
  settle();
  expect_try_after(1h);
  ASSERT_TRUE(health()->paused());
  for (int i = 0; i < 20; ++i) say(key("user" + std::to_string(i)), {"hello"});
  expect_try_after(1min);
}

TEST_F(PausedWebhook, IsNotPausedByRefusalsOfAnOutput) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 422}; });
  fail_for_an_hour();
  EXPECT_FALSE(health());
}

TEST_F(PausedWebhook, WorksAgainWhenItRefusesAnOutput) {
  fail_for_an_hour();
  ASSERT_TRUE(health()->paused());
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 400}; });
  expect_try_after(1min);
  EXPECT_FALSE(health()->paused());
  EXPECT_FALSE(health()->failing_since);
}

TEST_F(PausedWebhook, WorksAgainWhenItsLastOutputIsDropped) {
  fail_for_an_hour();
  const auto outputs = store_->first().outbox().outputs(key("ann"), 0, 2);
  for (const auto& output : *outputs) {
    ASSERT_TRUE(store_->first().deliveries().drop(
        {.output_id = output.id, .key = key("ann"), .seq = output.seq}));
  }
  deliverer_->ownership_changed();
  ASSERT_TRUE(eventually([&] { return !health(); }));
  receiver_.set_handler({});
  say(key("ann"), {"three"});
  ASSERT_TRUE(eventually([&] { return pending() == 0; }));
}

TEST_F(PausedWebhook, IsNotPausedWithoutTheSetting) {
  stop();
  deliverer_.reset();
  start({.pause_after = 0ms});
  fail_for_an_hour();
  EXPECT_FALSE(health()->paused());
}

TEST_F(DelivererTest, SessionThatIsRefusedAgainAndAgainHoldsUpNoOther) {
  receiver_.set_handler([](const auto& request) {
    const bool ann = request.body.find("ann") != std::string::npos;
    return HttpReceiver::Answer{.status = ann ? 400 : 200};
  });
  say(key("ann"), {"bad"});
  for (std::size_t tries = 1; tries < 8; ++tries) {
    ASSERT_TRUE(receiver_.wait_for(tries));
    settle();
    to_next_try();
  }
  settle();
  say(key("bob"), {"good"});
  ASSERT_TRUE(eventually([&] { return pending() == 1; }));
  EXPECT_EQ(received()["bob"], std::vector<std::string>{"good"});
}

TEST_F(DelivererTest, OutputThatIsTooOldIsGivenUpWithoutATryWhileItsEndpointFails) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 503}; });
  for (int i = 0; i < 50; ++i) say(key("user" + std::to_string(i)), {"one", "two"});
  settle();
  const auto tried = receiver_.count();
  clock_.advance(25h);
  deliverer_->wake();
  ASSERT_TRUE(eventually([&] { return pending() == 0; }));
  EXPECT_EQ(store::read_backlog(store_->shards()).value().dead_letters, 100);
  EXPECT_LT(receiver_.count(), tried + 10);
}

// --- Clocks --------------------------------------------------------------------------------------

TEST_F(DelivererTest, ClockThatIsSetBackHoldsNothingUp) {
  for (const auto by : {1h, 48h, 24h * 400}) {
    const auto before = receiver_.count();
    receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 500}; });
    say(key("ann"), {"fails"});
    ASSERT_TRUE(receiver_.wait_for(before + 1));
    settle();
    receiver_.set_handler({});
    set_clock(-by);
    say(key("bob"), {"new"});
    ASSERT_TRUE(receiver_.wait_for(before + 2)) << "a first try waits for no clock";
    settle();
    EXPECT_EQ(receiver_.count(), before + 2) << "its wait is not over";
    clock_.advance(2s);
    deliverer_->wake();
    ASSERT_TRUE(receiver_.wait_for(before + 3));
    settle();
    EXPECT_EQ(pending(), 0);
  }
}

TEST_F(DelivererTest, ClockThatIsAheadForAWhileGivesNothingUp) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 500}; });
  for (const auto by : {25h, 24h * 400}) {
    set_clock(by);
    const auto before = receiver_.count();
    say(key("user" + std::to_string(by.count())), {"while it is ahead"});
    ASSERT_TRUE(receiver_.wait_for(before + 1));
    settle();
    clock_.advance(2s);
    deliverer_->wake();
    ASSERT_TRUE(receiver_.wait_for(before + 2));
    settle();
    set_clock(-by);
    clock_.advance(4s);
    deliverer_->wake();
    ASSERT_TRUE(receiver_.wait_for(before + 3));
    settle();
  }
  EXPECT_EQ(store::read_backlog(store_->shards()).value().dead_letters, 0);
  EXPECT_EQ(pending(), 2);
}

TEST_F(DelivererTest, RestartKeepsTheClockOfRetriesAndAges) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 500}; });
  say(key("ann"), {"first"});
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  set_clock(25h);
  settle();
  const auto offset = timer_clock_->offset();
  EXPECT_EQ(offset, -25h);
  stop();
  new_timer_clock(offset);
  restart();
  EXPECT_EQ(receiver_.count(), 1U) << "its wait is not over";
  clock_.advance(2s);
  deliverer_->wake();
  ASSERT_TRUE(receiver_.wait_for(2));
  settle();
  EXPECT_EQ(store::read_backlog(store_->shards()).value().dead_letters, 0);
}

TEST_F(DelivererTest, RetryIsNotPutOffByAClockThatIsSetBackWhileNoDaemonRuns) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 500}; });
  say(key("ann"), {"first"});
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  receiver_.set_handler({});
  stop();
  clock_.advance(-48h);
  new_timer_clock(0ms);
  restart();
  ASSERT_TRUE(receiver_.wait_for(2));
  settle();
  EXPECT_EQ(pending(), 0);
}

}  // namespace
}  // namespace conversed::daemon
