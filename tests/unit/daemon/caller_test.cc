#include "daemon/calls/caller.h"

#include <atomic>
#include <set>

#include "daemon/calls/call_request.h"
#include "daemon/timers/timer_clock.h"
#include "store/model/trace.h"
#include "store/model/url.h"
#include "tests/support/receipt_step.h"
#include "tests/unit/daemon/caller_world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using model::Errc;
using tests::HttpReceiver;

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
  EXPECT_EQ(request.headers.at("traceparent").substr(52), "-01");
}

TEST_F(CallerTest, UpstreamLearnsThatTheTraceIsNotSampled) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{}; });
  (void)result_of(call(model::new_event_id(model::Timestamp(), false) + "-c1"));
  EXPECT_EQ(receiver_.requests().at(0).headers.at("traceparent").substr(52), "-00");
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
      << "the appended event can be read back";
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
  offer(pending);
  tries(4);
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.events().at(0).result->status, 200);
  std::set<std::string> keys;
  for (const auto& request : receiver_.requests()) {
    keys.insert(request.headers.at("idempotency-key"));
  }
  EXPECT_EQ(keys, std::set<std::string>{"idem-c1"});
}

TEST_F(CallerTest, RetryKeepsItsWaitThoughTheClockIsSet) {
  std::atomic<std::int64_t> steady_ms{0};
  TimerClock timers(clock_, [&] { return std::chrono::milliseconds(steady_ms); });
  stop();
  start({.timer_clock = &timers});
  receiver_.set_handler([&](const auto&) {
    return HttpReceiver::Answer{.status = receiver_.count() < 3 ? 503 : 200};
  });
  auto pending = call("c1");
  pending.http->retries = 5;
  offer(pending);
  std::size_t seen = 0;
  for (const auto by : {std::chrono::hours(-24 * 366), std::chrono::hours(24 * 400)}) {
    ASSERT_TRUE(eventually([&] { return receiver_.count() > seen; }));
    seen = receiver_.count();
    clock_.advance(by);
    ASSERT_TRUE(eventually([&] {
      steady_ms += 100;
      clock_.advance(100ms);
      caller_->wake();
      return receiver_.count() > seen;
    }));
  }
  EXPECT_LT(steady_ms.load(), 60'000'000) << "and not after a year";
  stop();
}

TEST_F(CallerTest, AfterTheLastRetryTheFailureIsTheResult) {
  receiver_.set_handler(
      [](const auto&) { return HttpReceiver::Answer{.status = 500, .body = "\"no\""}; });
  auto pending = call("c1");
  pending.http->retries = 2;
  offer(pending);
  tries(3);
  ASSERT_TRUE(sink_.wait_for(1));
  const auto result = *sink_.events().at(0).result;
  EXPECT_EQ(result.error_code, "status");
  EXPECT_EQ(result.status, 500);
  EXPECT_EQ(result.body, "no");
  EXPECT_EQ(receiver_.count(), 3U);
}

TEST_F(CallerTest, PermanentStatusIsNotRetried) {
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
  offer(call("c1"));
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.tries(), 4);
  EXPECT_EQ(receiver_.count(), 1U) << "the call itself is not made again";
}

TEST_F(CallerTest, ResultThatTheLogCantHoldBecomesTooLarge) {
  sink_.fail(1, Errc::too_large);
  const auto result = result_of(call("c1"));
  EXPECT_EQ(result.error_code, "too_large");
  EXPECT_TRUE(result.body.is_null());
}

TEST_F(CallerTest, ReceiptOfACallTellsThatItsResultIsTooLarge) {
  const auto input = model::new_id();
  const auto pending = call(input + "-c1");
  sink_.fail(1, Errc::too_large);  // first, since the caller may read the row before the offer
  auto commit = turn(pending.session, {});
  commit.calls.started.push_back(pending);
  commit.receipts.push_back({.input_id = input,
                             .first = store::NewReceiptRow::First{},
                             .body = tests::receipt_step({{"what", "turn"}})});
  commit_now(std::move(commit));
  offer(pending);
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.events().front().result->error_code, "too_large");
  nlohmann::json step;
  ASSERT_TRUE(eventually([&] {
    step = store_->first().receipts().get(input).value().rows.back().body;
    return step["what"] == "call";
  }));
  EXPECT_EQ(step["status"], 200);
  EXPECT_EQ(step["error"], "its result is too large for the log");
}

TEST_F(CallerTest, UnfinishedCallsAreMadeAtTheStartAndOnce) {
  stop();
  caller_.reset();
  for (int i = 0; i < 20; ++i) commit_call(call("old" + std::to_string(i)));
  start({.limits = {.in_hand = 4}});
  ASSERT_TRUE(sink_.wait_for(20));
  ASSERT_TRUE(eventually([&] { return caller_->idle(); }));
  std::set<std::string> ids;
  for (const auto& event : sink_.events()) ids.insert(event.id);
  EXPECT_EQ(ids.size(), 20U);
  EXPECT_EQ(receiver_.count(), 20U);
}

TEST_F(CallerTest, CallOfferedTwiceIsMadeOnce) {
  const auto pending = call("c1");
  offer(pending);
  offer(pending);
  ASSERT_TRUE(sink_.wait_for(1));
  offer(pending);
  EXPECT_EQ(result_of(call("c2")).status, 200);
  EXPECT_EQ(receiver_.count(), 2U);
}

TEST_F(CallerTest, SlowUpstreamHoldsNoOther) {
  stop();
  caller_.reset();
  start({.limits = {.per_upstream = 4}});
  HttpReceiver slow(
      [](const auto&) { return HttpReceiver::Answer{.then = HttpReceiver::Then::silence}; });
  for (int i = 0; i < 40; ++i) {
    auto pending = call("slow" + std::to_string(i));
    pending.http->url = slow.url();
    offer(pending);
  }
  EXPECT_EQ(result_of(call("quick")).status, 200);
  EXPECT_LE(slow.count(), 4U);
}

TEST_F(CallerTest, ModelsGetTheirAddressKeyAndModelFromTheConnection) {
  receiver_.set_handler([](const auto&) {
    return HttpReceiver::Answer{
        .body = R"({"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":12}})"};
  });
  const auto result = result_of(question("c1"));
  EXPECT_EQ(result.status, 200);
  EXPECT_EQ(result.model_tokens, 42);
  EXPECT_EQ(sink_.events().at(0).result->model_tokens, 42);
  EXPECT_EQ(metrics_.model_prompt_tokens.value(), 30U);
  EXPECT_EQ(metrics_.model_completion_tokens.value(), 12U);
  auto named = question("c2");
  named.http->body = R"({"model":"small"})";
  (void)result_of(named);
  const auto requests = receiver_.requests();
  EXPECT_EQ(requests.at(0).target, "/v1/chat/completions");
  EXPECT_EQ(requests.at(0).headers.at("authorization"), "Bearer hunter2");
  EXPECT_EQ(requests.at(0).headers.at("idempotency-key"), "idem-c1");
  EXPECT_EQ(requests.at(0).body, R"({"messages":[],"model":"big"})");
  EXPECT_EQ(requests.at(1).body, R"({"model":"small"})");
}

TEST_F(CallerTest, AModelsKeyGoesNowhereElse) {
  auto elsewhere = call("c1", "model");
  EXPECT_EQ(result_of(elsewhere).error_code, "connection_deleted");
  auto no_model = question("c2");
  no_model.http->connection_id = id_of("connections", "bearer");
  EXPECT_EQ(result_of(no_model).error_code, "connection_deleted");
  EXPECT_EQ(receiver_.count(), 0U);
}

TEST_F(CallerTest, UsageOfAnyShapeIsReadAndBounded) {
  for (const auto& [body, tokens] : std::vector<std::pair<const char*, std::int64_t>>{
           {"[]", 0},
           {"{}", 0},
           {R"({"usage":1})", 0},
           {R"({"usage":{"prompt_tokens":"7","completion_tokens":-5}})", 0},
           {R"({"usage":{"total_tokens":9}})", 9},
           {R"({"usage":{"prompt_tokens":1e300}})", 1'000'000'000}}) {
    const auto used = model_usage(nlohmann::json::parse(body));
    EXPECT_EQ(used.prompt + used.completion, tokens) << body;
  }
}

TEST_F(CallerTest, AnUsedUpQuotaAsksNoModel) {
  stop();
  caller_.reset();
  start({.model_tokens_per_month = 100});
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.body = "{}"}; });
  EXPECT_EQ(result_of(question("c1")).error_code, "");
  ASSERT_TRUE(store_->committer().write_and_wait([&](store::Writer& writer) {
    return store::Usage::add(writer, {organisation_, store::model_tokens_counter, 100});
  }));
  EXPECT_EQ(result_of(question("c2")).error_code, "quota_exhausted");
  EXPECT_EQ(receiver_.count(), 1U);
  EXPECT_EQ(result_of(call("c3")).error_code, "") << "calls without a model go on";
}

TEST_F(CallerTest, SearchesComeBackAsEventsWithTheirClaim) {
  import_knowledge({"Returns take 14 days.", "Delivery takes 2 days."});
  const auto result = result_of(search("s1", "returns"));
  EXPECT_EQ(result.status, 200);
  EXPECT_EQ(result.error_code, "");
  ASSERT_EQ(result.body["hits"].size(), 1U);
  const auto& hit = result.body["hits"][0];
  EXPECT_EQ(hit["text"], "Returns take 14 days.");
  EXPECT_EQ(hit["source"], "FAQ");
  EXPECT_EQ(hit["data"], (nlohmann::json{{"page", 3}}));
  EXPECT_GT(hit["score"], 0.0);
  EXPECT_LT(hit["score"], 1.0);
  const auto event = sink_.events().at(0);
  EXPECT_EQ(event.id, "s1-r");
  EXPECT_EQ(event.claim, (model::Claim{model::Claim::Kind::pending_call, "s1"}));
  EXPECT_EQ(receiver_.count(), 0U);
  EXPECT_EQ(metrics_.search_seconds.count(), 1U);
}

TEST_F(CallerTest, MissingKnowledgeStoresAndLargeHitsAreToldApart) {
  EXPECT_EQ(result_of(search("s1", "x")).error_code, "knowledge_deleted");
  import_knowledge({std::string(200 * 1024, 'a') + " returns", "returns",
                    std::string(200 * 1024, 'b') + " returns"});
  const auto result = result_of(search("s2", "returns"));
  EXPECT_EQ(result.error_code, "");
  EXPECT_EQ(result.body["hits"].size(), 2U) << "the size limit of a result cuts the hits";
}

TEST_F(CallerTest, SpansOfSearchesHaveTheErrorOfTheSearch) {
  stop();
  caller_.reset();
  Spans spans;
  start({.spans = &spans});
  const auto error_of = [&](const std::string& name) {
    const auto id = model::new_event_id(model::Timestamp(), true) + "-" + name;
    auto code = result_of(search(id, "returns")).error_code;
    const auto taken = spans.take(2, {}, std::chrono::steady_clock::now());
    EXPECT_EQ(taken.size(), 1U);
    if (!taken.empty()) {
      EXPECT_EQ(taken[0].name, "knowledge search");
      EXPECT_EQ(taken[0].error, code);
    }
    return code;
  };
  EXPECT_EQ(error_of("c1"), "knowledge_deleted");
  import_knowledge({"Returns take 14 days."});
  EXPECT_EQ(error_of("c2"), "");
  stop();
}

TEST_F(CallerTest, UnfinishedSearchesAreMadeAtTheStart) {
  import_knowledge({"Returns take 14 days."});
  stop();
  caller_.reset();
  for (int i = 0; i < 40; ++i) {
    const auto pending = search("s" + std::to_string(i), "returns");
    auto commit = turn(pending.session, {});
    commit.calls.started.push_back(pending);
    commit_now(std::move(commit));
  }
  start({.limits = {.per_upstream = 2}});
  ASSERT_TRUE(sink_.wait_for(40));
  for (const auto& event : sink_.events()) {
    EXPECT_EQ(event.result->body["hits"].size(), 1U) << event.id;
  }
}

struct ScriptTest : CallerTest {
  void start_with_scripts(std::size_t processes = 4) {
    stop();
    caller_.reset();
    pool_ = std::make_unique<CodePool>(program_, processes);
    start({.limits = {.scripts = processes}, .code = pool_.get(), .spans = &spans_});
  }
  void TearDown() override {
    stop();
    pool_.reset();
    CallerTest::TearDown();
  }
  model::PendingCall script(const std::string& id, std::string text) {
    model::PendingCall pending;
    pending.id = id;
    pending.session = key("user-" + id);
    pending.trace_id = model::new_trace_id();
    pending.code = model::CodeCall{.script = std::move(text), .values = {{"input", 6}}};
    return pending;
  }

  std::string program_ = CONVERSED_CODE_PROGRAM;
  Spans spans_;
  std::unique_ptr<CodePool> pool_;
};

TEST_F(ScriptTest, ResultsComeBackAsEventsWithTheirClaim) {
  start_with_scripts();
  const auto result = result_of(script("s1", "return {answer: input * 7}"));
  EXPECT_EQ(result.error_code, "") << result.error_message;
  EXPECT_EQ(result.body, (nlohmann::json{{"answer", 42}}));
  const auto event = sink_.events().at(0);
  EXPECT_EQ(event.id, "s1-r");
  EXPECT_EQ(event.claim, (model::Claim{model::Claim::Kind::pending_call, "s1"}));
  EXPECT_EQ(receiver_.count(), 0U);
  EXPECT_EQ(result_of(script("s2", "return input.a.b")).error_code, "script_error");
}

TEST_F(ScriptTest, SpansHaveTheErrorOfTheScript) {
  start_with_scripts();
  const auto error_of = [&](const std::string& name, const std::string& text,
                            std::chrono::milliseconds timeout) {
    auto pending = script(model::new_event_id(model::Timestamp(), true) + "-" + name, text);
    pending.code->timeout = timeout;
    auto code = result_of(pending).error_code;
    const auto spans = spans_.take(1, {}, std::chrono::steady_clock::time_point::max());
    EXPECT_EQ(spans.at(0).name, "script");
    EXPECT_EQ(spans.at(0).error, code) << text;
    return code;
  };
  constexpr auto usual = 10s;
  EXPECT_EQ(error_of("c1", "return 1", usual), "");
  EXPECT_EQ(error_of("c2", "throw new Error('no')", usual), "script_error");
  EXPECT_EQ(error_of("c3", "for (;;);", 50ms), "timeout");
  EXPECT_EQ(error_of("c4", "return 'x'.repeat(1000000)", usual), "result_too_large");
}

TEST_F(ScriptTest, FailsWithoutARunIfScriptsAreOff) {
  EXPECT_EQ(result_of(script("s1", "return 1")).error_code, "code_off");
}

TEST_F(ScriptTest, IsRunAgainAtTheStart) {
  stop();
  caller_.reset();
  for (int i = 0; i < 20; ++i) commit_call(script("s" + std::to_string(i), "return input"));
  start_with_scripts();
  ASSERT_TRUE(sink_.wait_for(20));
  for (const auto& event : sink_.events()) EXPECT_EQ(event.result->body, 6) << event.id;
}

TEST_F(ScriptTest, ASandboxThatFailsIsTriedAgainThenGivenUp) {
  program_ = "/nowhere/conversed-code";
  start_with_scripts();
  offer(script("s1", "return 1"));
  ASSERT_TRUE(eventually([&] {
    clock_.advance(std::chrono::seconds(10));
    caller_->wake();
    return !sink_.events().empty();
  }));
  EXPECT_EQ(sink_.events().at(0).result->error_code, "sandbox_failed");
  EXPECT_EQ(metrics_.calls(CallOutcome::failed).value(), 1U);
}

TEST_F(CallerTest, StopDoesNotWaitForAnUpstream) {
  receiver_.set_handler(
      [](const auto&) { return HttpReceiver::Answer{.then = HttpReceiver::Then::silence}; });
  offer(call("c1"));
  ASSERT_TRUE(receiver_.wait_for(1));
  caller_->stop();
  caller_->stop();
  EXPECT_TRUE(sink_.events().empty());
}

TEST_F(CallerTest, ResultOfAnErasedSessionIsNotAppended) {
  // The session is erased while the upstream works on the call.
  receiver_.set_handler([&](const auto&) {
    EXPECT_TRUE(store_->first().user_data().erase({project(), "user-erased"}, {}));
    return HttpReceiver::Answer{.status = 200};
  });
  offer(call("erased"));
  ASSERT_TRUE(receiver_.wait_for(1));
  ASSERT_TRUE(eventually([&] { return caller_->idle(); }));
  EXPECT_TRUE(sink_.events().empty());
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 200}; });
  EXPECT_EQ(result_of(call("next")).status, 200);
  EXPECT_EQ(sink_.events().size(), 1U);
}

TEST_F(CallerTest, TriesAreCountedInTheRowAndGoOnAfterARestart) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.status = 503}; });
  auto pending = call("c1");
  pending.http->retries = 2;
  offer(pending);
  ASSERT_TRUE(eventually([&] { return (*store_->first().calls().find("c1"))->attempts == 1; }));
  restart();
  tries(3);
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(sink_.events().at(0).result->error_code, "status");
  EXPECT_EQ(receiver_.count(), 3U);
}

TEST_F(CallerTest, RetryIsDueAtOnceIfTheClockWasSetBackWhileNoDaemonRan) {
  commit_call(call("c1"));
  clock_.advance(-48h);
  restart();
  EXPECT_TRUE(sink_.wait_for(1));
}

TEST_F(CallerTest, CallWhoseResultIsInTheLogIsNotMadeAgainAfterARestart) {
  EXPECT_EQ(result_of(call("c1")).status, 200);
  ASSERT_TRUE(eventually([&] { return caller_->idle(); }));
  restart();
  EXPECT_EQ(result_of(call("c2")).status, 200);
  ASSERT_TRUE(eventually([&] { return caller_->idle(); }));
  EXPECT_EQ(receiver_.count(), 2U);
  stop();
  ASSERT_TRUE(store_->first().timers().log_lost());
  caller_.reset();
  start();
  EXPECT_TRUE(sink_.wait_for(4)) << "the new log holds no result";
}

TEST_F(CallerTest, CallThatCantBeReadHoldsNoOtherUp) {
  stop();
  caller_.reset();
  commit_call(call("damaged"));
  write("UPDATE pending_calls SET request = '['");
  commit_call(call("good"));
  start();
  ASSERT_TRUE(sink_.wait_for(1));
  ASSERT_TRUE(eventually([&] { return caller_->idle(); }));
  EXPECT_EQ(sink_.events().size(), 1U);
  EXPECT_EQ(sink_.events().at(0).id, "good-r");
}

TEST_F(CallerTest, CredentialsGoToTheHostsOfTheirConnectionAlone) {
  const auto bound_to = [&](const std::string& host) {
    import({{ "web",
              "" }},
           {{.name = "bound",
             .type = "httpBearer",
             .fields =
                 {{ "token",
                    "hunter2" }},
             .source = nlohmann::json::object(),
             .hosts = {
               host
             } }});
  };
  bound_to("crm.example.com");
  const auto refused = result_of(call("refused", "bound"));
  EXPECT_EQ(refused.error_code, "host_refused");
  const std::string here = model::authority_of(receiver_.url());
  EXPECT_EQ(refused.error_message, "the Connection 'bound' is not for the host " + here +
                                       "; its `hosts` say which ones it is for");
  EXPECT_EQ(receiver_.count(), 0U);
  bound_to(here);
  EXPECT_EQ(result_of(call("sent", "bound")).error_code, "");
  EXPECT_EQ(receiver_.requests().at(0).headers.at("authorization"), "Bearer hunter2");
}

}  // namespace
}  // namespace conversed::daemon
