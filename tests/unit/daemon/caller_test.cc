#include "daemon/caller.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "daemon/call_request.h"
#include "daemon/logging.h"
#include "daemon/metrics.h"
#include "tests/support/http_receiver.h"
#include "tests/unit/daemon/world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using model::Errc;
using tests::HttpReceiver;

class CallerTest : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    log::set_sink([this](std::string_view line) {
      const std::lock_guard lock(log_mutex_);
      log_ += line;
      log_ += '\n';
    });
    log::open({.level = log::Level::debug});
    const auto source = nlohmann::json::object();
    import({{ "web",
              "" }},
           {{"basic",
             "httpBasic",
             {{"username", "ann"},
              { "password",
                "hunter2" }},
             source},
            {"bearer",
             "httpBearer",
             {{ "token",
                "hunter2" }},
             source},
            {"header",
             "httpHeader",
             {{"name", "X-Auth"},
              { "value",
                "hunter2" }},
             source},
            { "model",
              "llm",
              {{ "token",
                 "hunter2" }},
              source }});
    start();
  }
  void TearDown() override {
    stop();
    log::set_sink({});
    log::open({});
    EXPECT_EQ(log_.find("hunter2"), std::string::npos) << log_;
  }

  void start(CallerSettings settings = {}) {
    http_ = std::make_unique<HttpClient>(HttpClientSettings{}, loopback_egress());
    ASSERT_TRUE(http_->start());
    caller_ = std::make_unique<Caller>(settings, *store_, *http_, sink_.append(), clock_, metrics_);
    ASSERT_TRUE(caller_->start());
  }
  void stop() {
    if (caller_) caller_->stop();
    if (http_) http_->stop();
  }

  model::PendingCall call(const std::string& id, const std::string& connection = "") {
    model::PendingCall pending;
    pending.id = id;
    pending.session = key("user-" + id);
    pending.trace_id = model::new_trace_id();
    pending.http = model::HttpCall{.method = "POST",
                                   .url = receiver_.url("/api?q=hunter2"),
                                   .headers = {{"Content-Type", "application/json"}},
                                   .body = R"({"a":1})",
                                   .connection_id = "",
                                   .idempotency_key = "idem-" + id};
    if (!connection.empty()) pending.http->connection_id = id_of("connections", connection);
    return pending;
  }
  void commit_call(const model::PendingCall& pending) {
    auto unit = turn(pending.session, {});
    unit.calls_started.push_back(pending);
    commit(std::move(unit));
  }
  model::CallResult result_of(model::PendingCall pending) {
    const auto before = sink_.events().size();
    caller_->offer(std::move(pending));
    EXPECT_TRUE(sink_.wait_for(before + 1));
    return *sink_.events().back().result;
  }
  // Lets time pass until the receiver has seen so many requests.
  void tries(std::size_t count) {
    ASSERT_TRUE(eventually([&] {
      clock_.advance(100ms);
      caller_->wake();
      return receiver_.count() >= count;
    }));
  }

  HttpReceiver receiver_;
  Metrics metrics_;
  EventSink sink_;
  std::unique_ptr<HttpClient> http_;
  std::unique_ptr<Caller> caller_;
  std::mutex log_mutex_;
  std::string log_;
};

TEST_F(CallerTest, AnswerComesBackAsAnEventWithItsClaim) {
  receiver_.set_handler(
      [](const auto&) { return HttpReceiver::Answer{.status = 201, .body = R"({"ok":true})"}; });
  const auto pending = call("c1");
  const auto result = result_of(pending);
  EXPECT_EQ(result.call_id, "c1");
  EXPECT_EQ(result.status, 201);
  EXPECT_EQ(result.body, (nlohmann::json{{"ok", true}}));
  EXPECT_EQ(result.error_code, "");
  const auto event = sink_.events().at(0);
  EXPECT_EQ(event.id, "c1-r");
  EXPECT_EQ(event.type, model::EventType::call_result);
  EXPECT_EQ(event.session, pending.session);
  EXPECT_EQ(event.trace_id, pending.trace_id);
  EXPECT_EQ(event.claim, (model::Claim{model::Claim::Kind::pending_call, "c1"}));
  const auto request = receiver_.requests().at(0);
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.body, R"({"a":1})");
  EXPECT_EQ(request.headers.at("idempotency-key"), "idem-c1");
  EXPECT_EQ(request.headers.at("traceparent").substr(3, 32), pending.trace_id);
}

TEST_F(CallerTest, BodyThatIsNoJsonIsText) {
  std::string body = "plain \xff text";
  receiver_.set_handler([&](const auto&) { return HttpReceiver::Answer{.body = body}; });
  const auto result = result_of(call("c1"));
  EXPECT_EQ(result.body, "plain \xef\xbf\xbd text");
  body = std::string(62, '[') + std::string(62, ']');
  const auto deep = result_of(call("c2"));
  EXPECT_TRUE(deep.body.is_string());
  EXPECT_TRUE(model::decode_event(sink_.events().back().session.encode(), "c2-r", "callResult", "t",
                                  model::encode_value(sink_.events().back())))
      << "what is appended can be read back";
}

TEST_F(CallerTest, ConnectionsBecomeHeadersAndReplaceTheNodesOwn) {
  auto basic = call("c1", "basic");
  basic.http->headers.emplace_back("authorization", "forged");
  EXPECT_EQ(result_of(basic).status, 200);
  EXPECT_EQ(result_of(call("c2", "bearer")).status, 200);
  EXPECT_EQ(result_of(call("c3", "header")).status, 200);
  const auto requests = receiver_.requests();
  EXPECT_EQ(requests.at(0).headers.at("authorization"), "Basic YW5uOmh1bnRlcjI=");
  EXPECT_EQ(requests.at(1).headers.at("authorization"), "Bearer hunter2");
  EXPECT_EQ(requests.at(2).headers.at("x-auth"), "hunter2");
}

TEST_F(CallerTest, MissingForeignOrUnfitConnectionFailsAtOnce) {
  auto deleted = call("c1", "bearer");
  ASSERT_TRUE(store_->assets().delete_connection(project(), deleted.http->connection_id));
  auto foreign = call("c2", "basic");
  foreign.session.project_id = "another";
  for (auto& pending : {deleted, foreign, call("c3", "model")}) {
    const auto result = result_of(pending);
    EXPECT_EQ(result.error_code, "connection_deleted") << pending.id;
    EXPECT_EQ(result.status, 0);
  }
  EXPECT_EQ(receiver_.count(), 0U);
}

TEST_F(CallerTest, FailuresAreRetriedWithTheSameIdempotencyKey) {
  std::vector<HttpReceiver::Answer> answers{
      {.status = 503}, {.then = HttpReceiver::Then::close}, {.status = 429}, {.status = 200}};
  receiver_.set_handler([&](const auto&) { return answers.at(receiver_.count()); });
  auto pending = call("c1");
  pending.http->retries = 3;
  caller_->offer(pending);
  tries(4);
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.events().at(0).result->status, 200);
  std::set<std::string> keys;
  for (const auto& request : receiver_.requests()) {
    keys.insert(request.headers.at("idempotency-key"));
  }
  EXPECT_EQ(keys, std::set<std::string>{"idem-c1"});
}

TEST_F(CallerTest, AfterTheLastRetryTheFailureIsTheResult) {
  receiver_.set_handler(
      [](const auto&) { return HttpReceiver::Answer{.status = 500, .body = "\"no\""}; });
  auto pending = call("c1");
  pending.http->retries = 2;
  caller_->offer(pending);
  tries(3);
  ASSERT_TRUE(sink_.wait_for(1));
  const auto result = *sink_.events().at(0).result;
  EXPECT_EQ(result.error_code, "status");
  EXPECT_EQ(result.status, 500);
  EXPECT_EQ(result.body, "no");
  EXPECT_EQ(receiver_.count(), 3U);
}

TEST_F(CallerTest, StatusThatWillNotChangeIsNotRetried) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 404}; });
  auto pending = call("c1");
  pending.http->retries = 5;
  EXPECT_EQ(result_of(pending).error_code, "status");
  EXPECT_EQ(receiver_.count(), 1U);
}

TEST_F(CallerTest, EachFailureHasItsCodeAndNoSecretInItsMessage) {
  receiver_.set_handler([](const auto& request) {
    if (request.target.starts_with("/big")) {
      return HttpReceiver::Answer{.body = std::string(300 * 1024, 'x')};
    }
    return HttpReceiver::Answer{.then = request.target.starts_with("/slow")
                                            ? HttpReceiver::Then::silence
                                            : HttpReceiver::Then::close};
  });
  struct Row {
    std::string url;
    const char* code;
  };
  int n = 0;
  for (const auto& row : std::vector<Row>{{receiver_.url("/slow?hunter2"), "timeout"},
                                          {receiver_.url("/close?hunter2"), "refused"},
                                          {receiver_.url("/big?hunter2"), "too_large"},
                                          {"http://10.0.0.1/?hunter2", "egress_refused"},
                                          {"http://hunter2 here/", "refused"}}) {
    auto pending = call("c" + std::to_string(++n), "bearer");
    pending.http->url = row.url;
    pending.http->timeout = row.code == std::string("timeout") ? 50ms : 10'000ms;
    const auto result = result_of(pending);
    EXPECT_EQ(result.error_code, row.code) << row.url;
    EXPECT_FALSE(result.error_message.empty());
    EXPECT_EQ(result.error_message.find("hunter2"), std::string::npos);
    EXPECT_EQ(result.status, 0);
  }
}

TEST_F(CallerTest, ResultIsAppendedAgainUntilTheLogTakesIt) {
  sink_.fail(3, Errc::unavailable);
  caller_->offer(call("c1"));
  ASSERT_TRUE(eventually([&] {
    clock_.advance(100ms);
    caller_->wake();
    return sink_.events().size() == 1;
  }));
  EXPECT_EQ(sink_.tries(), 4);
  EXPECT_EQ(receiver_.count(), 1U) << "the call itself is not made again";
}

TEST_F(CallerTest, ResultThatTheLogCantHoldBecomesTooLarge) {
  sink_.fail(1, Errc::too_large);
  const auto result = result_of(call("c1"));
  EXPECT_EQ(result.error_code, "too_large");
  EXPECT_TRUE(result.body.is_null());
}

TEST_F(CallerTest, UnfinishedCallsAreMadeAtTheStartAndOnce) {
  stop();
  caller_.reset();
  for (int i = 0; i < 20; ++i) commit_call(call("old" + std::to_string(i)));
  start({.max_calls = 4});
  ASSERT_TRUE(sink_.wait_for(20));
  ASSERT_TRUE(eventually([&] { return caller_->idle(); }));
  std::set<std::string> ids;
  for (const auto& event : sink_.events()) ids.insert(event.id);
  EXPECT_EQ(ids.size(), 20U);
  EXPECT_EQ(receiver_.count(), 20U);
}

TEST_F(CallerTest, CallOfferedTwiceIsMadeOnce) {
  const auto pending = call("c1");
  caller_->offer(pending);
  caller_->offer(pending);
  ASSERT_TRUE(sink_.wait_for(1));
  caller_->offer(pending);
  EXPECT_EQ(result_of(call("c2")).status, 200);
  EXPECT_EQ(receiver_.count(), 2U);
}

TEST_F(CallerTest, SlowUpstreamHoldsNoOther) {
  stop();
  caller_.reset();
  start({.max_per_upstream = 4});
  HttpReceiver slow(
      [](const auto&) { return HttpReceiver::Answer{.then = HttpReceiver::Then::silence}; });
  for (int i = 0; i < 40; ++i) {
    auto pending = call("slow" + std::to_string(i));
    pending.http->url = slow.url();
    caller_->offer(std::move(pending));
  }
  EXPECT_EQ(result_of(call("quick")).status, 200);
  EXPECT_LE(slow.count(), 4U);
}

TEST_F(CallerTest, StopDoesNotWaitForAnUpstream) {
  receiver_.set_handler(
      [](const auto&) { return HttpReceiver::Answer{.then = HttpReceiver::Then::silence}; });
  caller_->offer(call("c1"));
  ASSERT_TRUE(receiver_.wait_for(1));
  caller_->stop();
  caller_->stop();
  EXPECT_TRUE(sink_.events().empty());
}

}  // namespace
}  // namespace conversed::daemon
