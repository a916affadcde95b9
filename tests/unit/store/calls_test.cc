#include "store/conversation/calls.h"
#include "store/commit/call_target.h"

#include <set>

#include "store/conversation/due_sql.h"
#include "store/shards/backlog.h"
#include "store/sql/sql.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using namespace std::chrono_literals;

class CallsTest : public StoreTest {
 protected:
  static model::PendingCall call(const std::string& id, const std::string& url,
                                 const std::string& project = "project") {
    model::PendingCall call;
    call.id = id;
    call.session = key_of("user-" + id, project);
    call.trace_id = model::new_trace_id();
    call.http.emplace();
    call.http->url = url;
    return call;
  }
  void put(const model::PendingCall& call) {
    auto commit = turn(call.session, 0, ++offset_);
    commit.calls.started.push_back(call);
    ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  }
  // The due calls of the lane, read in pages of `limit`.
  std::vector<std::string> due(const std::string& target, std::size_t limit = 10) {
    std::vector<std::string> ids;
    auto page = store_->first().calls().due("project", target, clock_.now(), limit);
    while (!page->calls.empty()) {
      for (const auto& each : page->calls) ids.push_back(each.id);
      page =
          store_->first().calls().due("project", target, clock_.now(), limit, &page->calls.back());
    }
    return ids;
  }
  void wait_for_marks() {
    ASSERT_TRUE(
        store_->committer().write_and_wait([](Writer&) -> model::Result<void> { return {}; }));
  }

  std::int64_t offset_ = 0;
};

using Ids = std::vector<std::string>;

TEST_F(CallsTest, LanesAreProjectsAndTargetsWithTheirFirstDueCall) {
  put(call("a", "https://one.example/x"));
  const auto first = clock_.now();
  clock_.advance(1s);
  put(call("b", "https://one.example/y"));
  put(call("c", "https://two.example:8080/"));
  put(call("d", "https://one.example/x", "other"));
  auto lane = store_->first().calls().lane_behind("", "");
  ASSERT_TRUE(lane && *lane);
  EXPECT_EQ((*lane)->project_id, "other");
  lane = store_->first().calls().lane_behind("other", std::nullopt);
  ASSERT_TRUE(lane && *lane);
  EXPECT_EQ((*lane)->target, "host one.example");
  EXPECT_EQ((*lane)->due_at, first);
  lane = store_->first().calls().lane_behind("project", (*lane)->target);
  ASSERT_TRUE(lane && *lane);
  EXPECT_EQ((*lane)->target, "host two.example:8080");
  EXPECT_FALSE(*store_->first().calls().lane_behind("project", (*lane)->target));
  EXPECT_FALSE(*store_->first().calls().lane_behind("project", std::nullopt));
}

TEST_F(CallsTest, PagesOfDueCallsNeitherRepeatNorSkip) {
  Ids all;
  for (int i = 0; i < 7; ++i) {
    all.push_back("c" + std::to_string(i));
    put(call(all.back(), "https://one.example/"));
    if (i % 3 == 0) clock_.advance(1s);
  }
  for (const std::size_t limit : {1U, 2U, 7U, 100U}) {
    EXPECT_EQ(due("host one.example", limit), all) << limit;
  }
}

TEST_F(CallsTest, MarksSayWhenACallIsDueAndThatItsResultIsInTheLog) {
  put(call("a", "https://one.example/"));
  put(call("b", "https://one.example/"));
  const auto later = clock_.now() + 30s;
  store_->first().calls().put_off("a", later, 2, [] {});
  store_->first().calls().appended("b", [] {});
  wait_for_marks();
  const auto page = store_->first().calls().due("project", "host one.example", clock_.now(), 10);
  EXPECT_TRUE(page->calls.empty());
  EXPECT_EQ(page->next, later);
  EXPECT_EQ((*store_->first().calls().find("a"))->attempts, 2);
  store_->first().calls().put_off("b", clock_.now(), 1, [] {});
  store_->first().calls().appended("gone", [] {});
  wait_for_marks();
  clock_.advance(30s);
  EXPECT_EQ(due("host one.example"), Ids{"a"});
  EXPECT_EQ(*store_->first().calls().waits("b"), true) << "the Turn of its result has not run";
  ASSERT_TRUE(store_->first().timers().log_lost());
  EXPECT_EQ(due("host one.example"), (Ids{"b", "a"}));
}

TEST_F(CallsTest, WaitsOfAClockThatWasAheadAreBroughtForward) {
  put(call("a", "https://one.example/"));
  put(call("b", "https://one.example/"));
  store_->first().calls().put_off("a", clock_.now() + 48h, 1, [] {});
  store_->first().calls().put_off("b", clock_.now() + 30s, 1, [] {});
  ASSERT_TRUE(store_->first().calls().bring_forward(clock_.now() + 1min, clock_.now()));
  EXPECT_EQ(due("host one.example"), Ids{"a"});
}

TEST_F(CallsTest, TargetIsAsciiAndBoundedWhateverTheUrlSays) {
  const std::string odd = target_of(call("a", "https://b\xc3\xbc\n" + std::string(5'000, 'x')));
  EXPECT_LE(odd.size(), 255U);
  EXPECT_TRUE(odd.starts_with("host b%C3%BC%0Axxx"));
  put(call("a", std::string("https://\0\xff/", 11)));
  EXPECT_EQ(shown_target(call("a", "https://a\xff/")), "a\xef\xbf\xbd");
  auto model = call("b", "/chat");
  model.http->to_model = true;
  model.http->connection_id = "c1";
  EXPECT_EQ(connection_of_target(target_of(model)), "c1");
  EXPECT_EQ(connection_of_target(odd), "");
  EXPECT_EQ(words_of_upstream(shown_target(model)), "a language model");
}

TEST(CallId, NamesTheInputAndTheNumberOfTheCall) {
  EXPECT_EQ(input_of_call("in-c1-c12"), "in-c1");
  EXPECT_EQ(number_of_call("in-c1-c12"), 12U);
  for (const char* odd : {"", "in", "in-c", "in-cx", "in-c0"}) EXPECT_EQ(number_of_call(odd), 1U);
}

TEST_F(CallsTest, CallsAreCountedBesideAnyNumberOfQuestions) {
  model::PendingCall question;
  question.id = "question";
  question.session = key_of("asked");
  question.trace_id = model::new_trace_id();
  question.due_at = clock_.now() + 1h;
  question.is_time_out = true;
  put(question);
  ASSERT_TRUE(store_->committer().write_and_wait([](Writer& writer) {
    writer.connection().run(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :m)"
        " INSERT INTO pending_calls (id, session, trace_id, due_at, time_out)"
        " SELECT 'q' || i, session, trace_id, due_at, 1 FROM pending_calls, n",
        most_counted);
  }));
  put(call("a", "https://one.example/"));
  EXPECT_EQ(read_backlog(store_->shards()).value().running_calls, 1);
}

TEST_F(CallsTest, PagesDoNotReadRequests) {
  auto asked = call("a", "https://one.example/x");
  asked.http->retries = 2;
  asked.http->timeout = 7s;
  put(asked);
  model::PendingCall search;
  search.id = "b";
  search.session = key_of("b");
  search.trace_id = model::new_trace_id();
  search.search.emplace();
  search.search->store = "manual";
  put(search);
  ASSERT_TRUE(store_->committer().write_and_wait(
      [](Writer& writer) { writer.connection().run("UPDATE pending_calls SET request = '['"); }));
  const auto of_page = store_->first().calls().of_sessions({1, 2}).value();
  ASSERT_EQ(of_page.size(), 2U);
  EXPECT_EQ(of_page[0].id, "a");
  EXPECT_EQ(words_of_upstream(of_page[0].upstream.value()), "one.example");
  EXPECT_EQ(of_page[0].retries, 2);
  EXPECT_EQ(of_page[0].time_limit, 7s);
  EXPECT_EQ(of_page[0].try_at, clock_.now());
  EXPECT_EQ(words_of_upstream(of_page[1].upstream.value()), "the knowledge store manual");
  EXPECT_FALSE(of_page[1].time_limit);
  EXPECT_EQ(store_->first().calls().shown("a").value()->session, of_page[0].session);
  EXPECT_FALSE(store_->first().calls().shown("c").value());
}

// The cost does not depend on rows of other projects, other lanes or the log.
TEST_F(CallsTest, DueCallsAndLanesAreRangesOfAnIndex) {
  using Values = std::vector<SqlValue>;
  for (const auto& [sql, values] : std::vector<std::pair<std::string_view, Values>>{
           {sql_of_due_calls, {"project", "target", std::int64_t{0}, "id", std::int64_t{10}}},
           {sql_of_next_lane, {"project", "target"}},
           {sql_of_next_project, {"project"}}}) {
    expect_index_range(*store_, sql, values, "pending_calls_to_make");
  }
}

}  // namespace
}  // namespace conversed::store
