#include "daemon/delivery/deliverer.h"

#include <random>

#include "daemon/delivery/webhook.h"
#include "store/shards/backlog.h"
#include "tests/unit/daemon/deliverer_world.h"

namespace conversed::daemon {
namespace {

TEST_F(DelivererTest, OutputArrivesSignedOnceAndIsMarked) {
  say(key("ann"), {"hello"});
  ASSERT_TRUE(receiver_.wait_for(1));
  const auto request = receiver_.requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/hook");
  EXPECT_EQ(request.headers.at("x-conversed-sequence"), "1");
  EXPECT_EQ(request.headers.at("webhook-signature"),
            WebhookKey::of(signing_secret)
                ->sign(request.headers.at("webhook-id"),
                       std::stoll(request.headers.at("webhook-timestamp")), request.body));
  settle();
  EXPECT_EQ(pending(), 0);
  EXPECT_EQ(receiver_.count(), 1U);
  EXPECT_EQ(metrics_.deliveries(DeliveryOutcome::delivered).value(), 1U);
}

TEST_F(DelivererTest, DeliveriesAreCountedForTheirEndpointBeforeItsFirstTurn) {
  say(key("ann"), {"hello"});
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  const auto text = metrics_.expose();
  EXPECT_NE(text.find("conversed_endpoint_deliveries_total{endpoint=\"" + key("ann").endpoint_id +
                      "\",outcome=\"delivered\"} 1\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("conversed_endpoint_delivery_seconds_total{endpoint=\"other\"} 0\n"),
            std::string::npos);
}

TEST_F(DelivererTest, ReplacedSecretSignsBesideTheNewOneForAWhile) {
  const std::string fresh = "whsec_bmV3IHNlY3JldCBvZiB0aGUgd2ViaG9vaw==";
  const auto import_with = [&](const std::string& secret) {
    import({{ "web", receiver_.url("/hook") }}, {}, secret);
  };
  const auto signatures_of_next = [&] {
    const auto n = receiver_.count();
    say(key("ann"), {"hello"});
    EXPECT_TRUE(receiver_.wait_for(n + 1));
    const auto request = receiver_.requests().at(n);
    const auto by = [&](const std::string& secret) {
      return WebhookKey::of(secret)->sign(request.headers.at("webhook-id"),
                                          std::stoll(request.headers.at("webhook-timestamp")),
                                          request.body);
    };
    std::string named = request.headers.at("webhook-signature");
    for (const auto& [secret, name] :
         {std::pair(std::string(signing_secret), "old"), std::pair(fresh, "new")}) {
      if (const auto at = named.find(by(secret)); at != std::string::npos) {
        named.replace(at, by(secret).size(), name);
      }
    }
    return named;
  };
  EXPECT_EQ(signatures_of_next(), "old");
  import_with(fresh);
  EXPECT_EQ(signatures_of_next(), "new old");
  import_with(fresh);  // changes nothing, not even the time
  clock_.advance(DelivererSettings().secret_overlap - 1ms);
  EXPECT_EQ(signatures_of_next(), "new old");
  clock_.advance(1ms);
  EXPECT_EQ(signatures_of_next(), "new");
  const auto forget = [&] {
    const auto before = clock_.now() - DelivererSettings().secret_overlap;
    return store_->assets().forget_previous_secrets(before).value();
  };
  ASSERT_EQ(forget(), 0);
  clock_.advance(1ms);
  ASSERT_EQ(forget(), 1);
  EXPECT_FALSE(store_->assets().webhook_secrets(id_of("endpoints", "web"))->previous);
  EXPECT_EQ(signatures_of_next(), "new");
}

TEST_F(DelivererTest, OutputsOfASessionComeInOrder) {
  const auto seed = std::random_device{}();
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::map<std::string, std::vector<std::string>> said;
  for (int i = 0; i < 120; ++i) {
    const auto user = "user" + std::to_string(random() % 7);
    std::vector<std::string> texts(1 + random() % 3);
    for (auto& text : texts) said[user].push_back(text = std::to_string(i) + ":" + user);
    say(key(user), texts);
  }
  settle();
  EXPECT_EQ(received(), said);
  EXPECT_EQ(pending(), 0);
}

// A turn of a session ends after 16 outputs. The next ones are read once the marks are known.
TEST_F(DelivererTest, SessionWithManyOutputsDoesNotWaitForItsMarks) {
  committer_.mark_wait = std::chrono::hours(1);
  restart();
  const std::vector<std::string> texts(40, "hello");
  say_silently(key("ann"), texts);
  deliverer_->offer_earlier(key("ann"));
  EXPECT_TRUE(eventually([&] { return received()["ann"].size() == texts.size(); }));
}

TEST_F(DelivererTest, OrderHoldsWithHardlyAnyConnections) {
  stop();
  deliverer_.reset();
  start({.connections = 2});
  const auto seed = std::random_device{}();
  RecordProperty("seed", static_cast<int>(seed));
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::map<std::string, std::vector<std::string>> said;
  for (int i = 0; i < 150; ++i) {
    const auto user = "user" + std::to_string(random() % 20);
    std::vector<std::string> texts(1 + random() % 4);
    for (auto& text : texts) said[user].push_back(text = std::to_string(i) + ":" + user);
    say(key(user), texts);
  }
  ASSERT_TRUE(eventually([&] { return deliverer_->idle() && pending() == 0; }));
  EXPECT_EQ(received(), said);
}

TEST_F(DelivererTest, DropDuringThePostLetsTheNextOutputFollowAtOnce) {
  const auto drop_first = [this] {
    const auto first = store_->first().outbox().outputs(key("ann"), 0, 1)->front();
    EXPECT_TRUE(store_->first().deliveries().drop(
        {.output_id = first.id, .key = key("ann"), .seq = first.seq}));
    deliverer_->offer_earlier(key("ann"));
  };
  receiver_.set_handler([&](const auto& request) {
    const bool is_first = request.headers.at("x-conversed-sequence") == "1";
    if (is_first) drop_first();
    return HttpReceiver::Answer{.status = is_first ? 503 : 200};
  });
  say(key("ann"), {"one", "two"});
  ASSERT_TRUE(eventually([&] { return pending() == 0; }));
  EXPECT_EQ(receiver_.count(), 2U);
}

TEST_F(DelivererTest, EachSessionHasOneInFlight) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.delay = 3ms}; });
  std::vector<std::string> texts;
  for (int i = 0; i < 8; ++i) texts.push_back(std::to_string(i));
  say(key("ann"), texts);
  ASSERT_TRUE(receiver_.wait_for(8));
  settle();
  EXPECT_EQ(receiver_.connections(), 1U);
}

TEST_F(DelivererTest, FailureIsRetriedWithTheSameIdAndHoldsItsSessionOnly) {
  receiver_.set_handler([](const auto& request) {
    const bool ann = request.body.find("ann") != std::string::npos;
    return HttpReceiver::Answer{.status = ann ? 500 : 200};
  });
  say(key("ann"), {"first", "second"});
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  say(key("bob"), {"hello"});
  ASSERT_TRUE(receiver_.wait_for(2));
  settle();
  EXPECT_EQ(pending(), 2);
  receiver_.set_handler({});
  to_next_try();
  ASSERT_TRUE(receiver_.wait_for(4));
  settle();
  EXPECT_EQ(pending(), 0);
  EXPECT_EQ(received()["ann"], (std::vector<std::string>{"first", "first", "second"}));
  const auto requests = receiver_.requests();
  EXPECT_EQ(requests[0].headers.at("webhook-id"), requests[2].headers.at("webhook-id"));
}

TEST_F(DelivererTest, EveryKindOfFailureIsRetried) {
  using Answer = HttpReceiver::Answer;
  // The broken connection comes first: libcurl itself repeats a request on a kept connection.
  std::vector<Answer> answers{{.then = HttpReceiver::Then::close},
                              {.status = 400},
                              {.status = 408},
                              {.status = 404},
                              {.status = 429},
                              {.status = 302}};
  receiver_.set_handler([&](const auto&) {
    const auto turn = receiver_.count();
    return turn < answers.size() ? answers[turn] : Answer{};
  });
  say(key("ann"), {"stubborn"});
  for (std::size_t tries = 1; tries <= answers.size(); ++tries) {
    ASSERT_TRUE(receiver_.wait_for(tries));
    ASSERT_TRUE(
        eventually([&] { return metrics_.deliveries(DeliveryOutcome::retried).value() == tries; }));
    settle();
    to_next_try();
  }
  ASSERT_TRUE(receiver_.wait_for(answers.size() + 1));
  settle();
  EXPECT_EQ(pending(), 0);
}

TEST_F(DelivererTest, RetryAfterIsHonoured) {
  receiver_.set_handler([](const auto&) {
    return HttpReceiver::Answer{.status = 503, .headers = {{"Retry-After", "120"}}};
  });
  say(key("ann"), {"hello"});
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  flush();
  const auto due = waiting();
  EXPECT_EQ(due.due_at, clock_.now() + 120s);
  EXPECT_EQ(due.attempts, 1);
}

TEST_F(DelivererTest, AfterRetryForAnOutputIsADeadLetterAndTheNextFollows) {
  restart({.pause_after = 0ms});
  receiver_.set_handler([](const auto& request) {
    const bool bad = request.body.find("\"bad\"") != std::string::npos;
    return HttpReceiver::Answer{.status = bad ? 500 : 200};
  });
  say(key("ann"), {"bad", "good"});
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  clock_.advance(24h);
  deliverer_->wake();
  ASSERT_TRUE(receiver_.wait_for(3));
  settle();
  EXPECT_EQ(pending(), 0);
  const auto letters = store_->first().dead_letters().list({.project_id = project()}, 0, 10)->rows;
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters[0].output_seq, 1);
  EXPECT_EQ(letters[0].reason, "the webhook answered 500");

  receiver_.set_handler({});
  ASSERT_TRUE(store_->first().dead_letters().replay_output(project(), letters[0].id));
  deliverer_->offer_earlier(key("ann"));
  ASSERT_TRUE(receiver_.wait_for(4));
  settle();
  EXPECT_EQ(received()["ann"], (std::vector<std::string>{"bad", "bad", "good", "bad"}));
  EXPECT_EQ(pending(), 0);
}

TEST_F(DelivererTest, StatusTakesTheDeliveryThoughTheBodyStalls) {
  receiver_.set_handler([](const auto&) {
    return HttpReceiver::Answer{.raw = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot all"};
  });
  say(key("ann"), {"one", "two"});
  ASSERT_TRUE(receiver_.wait_for(2));
  settle();
  EXPECT_EQ(pending(), 0);
  EXPECT_EQ(received()["ann"], (std::vector<std::string>{"one", "two"}));
}

TEST_F(DelivererTest, GoneEndsAnOutputAtOnce) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 410}; });
  say(key("ann"), {"hello"});
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  EXPECT_EQ(pending(), 0);
  EXPECT_EQ(store::read_backlog(store_->shards()).value().dead_letters, 1);
}

TEST_F(DelivererTest, WithoutAWebhookOutputsAreDroppedWithAMark) {
  say(key("ann", "mute"), {"hello", "again"});
  ASSERT_TRUE(eventually([&] { return pending() == 0; }));
  settle();
  EXPECT_EQ(receiver_.count(), 0U);
  EXPECT_EQ(metrics_.deliveries(DeliveryOutcome::dropped).value(), 2U);
}

TEST_F(DelivererTest, OutputsOfADeletedEndpointBecomeDeadLettersThatAreNotReplayed) {
  const auto gone = key("ann", "mute");
  const auto parts = store_->removals().endpoint(gone.endpoint_id, {}, clock_.now());
  ASSERT_TRUE(parts);
  ASSERT_TRUE(store_->committer().write_and_wait([&](store::Writer& writer) {
    store_->assets().grow(writer);
    return store::Removals::remove(writer, *parts);
  }));
  say(gone, {"hello", "again"});
  ASSERT_TRUE(eventually([&] { return pending() == 0; }));
  settle();
  const auto letters = store_->first().dead_letters().list({.project_id = project()}, 0, 10)->rows;
  ASSERT_EQ(letters.size(), 2U);
  for (const auto& letter : letters) {
    EXPECT_EQ(letter.reason, "its Endpoint was deleted");
    EXPECT_EQ(store_->first().dead_letters().replay_output(project(), letter.id).error().code,
              model::Errc::conflict);
  }
  EXPECT_EQ(store::read_backlog(store_->shards()).value().dead_letters, 2);
}

TEST_F(DelivererTest, ChangedWebhookIsUsedFromThenOn) {
  say(key("ann"), {"one"});
  ASSERT_TRUE(receiver_.wait_for(1));
  import({{ "web", receiver_.url("/moved") }});
  say(key("ann"), {"two"});
  ASSERT_TRUE(receiver_.wait_for(2));
  EXPECT_EQ(receiver_.requests().at(1).target, "/moved");
}

TEST_F(DelivererTest, PendingOutputsAreFoundAtTheStart) {
  stop();
  std::map<std::string, std::vector<std::string>> said;
  for (int i = 0; i < 40; ++i) {
    const auto user = "user" + std::to_string(i % 8);
    said[user].push_back(std::to_string(i));
    say_silently(key(user), {std::to_string(i)});
  }
  restart();
  ASSERT_TRUE(receiver_.wait_for(40));
  settle();
  EXPECT_EQ(received(), said);
  EXPECT_EQ(pending(), 0);
}

TEST_F(DelivererTest, RestartKeepsTheTimeOfTheNextTry) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 500}; });
  say(key("ann"), {"first"});
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  receiver_.set_handler({});
  restart();
  settle();
  EXPECT_EQ(receiver_.count(), 1U) << "it is not due yet";
  say(key("ann"), {"second"});
  settle();
  EXPECT_EQ(receiver_.count(), 1U) << "the second waits for the first";
  to_next_try();
  ASSERT_TRUE(receiver_.wait_for(3));
  settle();
  EXPECT_EQ(received()["ann"], (std::vector<std::string>{"first", "first", "second"}));
}

TEST_F(DelivererTest, StopWaitsForDeliveriesInFlightAndKeepsTheirMarks) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.delay = 30ms}; });
  say(key("ann"), {"one", "two"});
  ASSERT_TRUE(receiver_.wait_for(1));
  stop();
  EXPECT_EQ(receiver_.count(), 1U);
  EXPECT_EQ(pending(), 1);
  deliverer_->stop();
  deliverer_->offer_earlier(key("ann"));
}

// The text in the store differs from the text in the commit's callback.
TEST_F(DelivererTest, OutputsThatACommitHandsOverAreNotRead) {
  say(key("ann"), {"first"});
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  auto commit = turn(key("bob"), {"stored"});
  commit.unseen_until = Deliverer::SteadyClock::now();
  commit_now(commit);
  commit.outputs[0].text = "handed over";
  deliverer_->offer(commit, true);
  settle();
  EXPECT_EQ(received()["bob"], (std::vector<std::string>{"handed over"}));
  EXPECT_EQ(pending(), 0);
}

TEST_F(DelivererTest, OutputsThatACommitHandsOverHaveTheirData) {
  say(key("ann"), {"first"});
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  auto commit = turn(key("bob"), {"with data"});
  commit.outputs[0].data = {{"buttons", {"yes", "no"}}};
  commit_now(std::move(commit), [&](const auto& done) { deliverer_->offer(done, true); });
  ASSERT_TRUE(receiver_.wait_for(2));
  EXPECT_EQ(json::parse(receiver_.requests().back().body)["output"]["data"],
            json({{"buttons", {"yes", "no"}}}));
}

TEST_F(DelivererTest, OutputThatAReadMayHaveSeenIsNotHandedOver) {
  auto commit = turn(key("ann"), {"once"});
  commit.unseen_until = Deliverer::SteadyClock::now();
  commit_now(commit);
  deliverer_->offer_earlier(key("bob"));
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  deliverer_->offer(commit, true);
  settle();
  EXPECT_EQ(receiver_.count(), 1U);
  EXPECT_EQ(pending(), 0);
}

TEST_F(DelivererTest, OutputBehindARetryIsNotHandedOver) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 500}; });
  say(key("ann"), {"first"});
  ASSERT_TRUE(receiver_.wait_for(1));
  settle();
  receiver_.set_handler({});
  say(key("ann"), {"second"});
  settle();
  EXPECT_EQ(receiver_.count(), 1U);
  to_next_try();
  ASSERT_TRUE(receiver_.wait_for(3));
  settle();
  EXPECT_EQ(received()["ann"], (std::vector<std::string>{"first", "first", "second"}));
}

TEST_F(DelivererTest, CutOffDeliveryIsRepeatedWithTheSameId) {
  stop();
  deliverer_.reset();
  start({.drain_timeout = 0ms});
  receiver_.set_handler(
      [](const auto&) { return HttpReceiver::Answer{.then = HttpReceiver::Then::silence}; });
  say(key("ann"), {"one"});
  ASSERT_TRUE(receiver_.wait_for(1));
  receiver_.set_handler({});
  restart();
  ASSERT_TRUE(receiver_.wait_for(2));
  settle();
  const auto requests = receiver_.requests();
  EXPECT_EQ(requests[0].headers.at("webhook-id"), requests[1].headers.at("webhook-id"));
  EXPECT_EQ(pending(), 0);
}

}  // namespace
}  // namespace conversed::daemon
