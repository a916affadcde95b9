// Timers in the routes of operators, and the switch of proactive follow-up.
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "store/model/ids.h"
#include "store/sql/sql.h"
#include "tests/unit/api/api_world.h"

namespace conversed::api {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::token;
using test::World;

class Timers : public testing::Test {
 protected:
  Timers() {
    world_.services->sessions.timer = [this](model::Timestamp due) { told_.push_back(due); };
  }

  // Stores a follow-up of a new session.
  void put(const std::string& id, const std::string& user, std::chrono::milliseconds in,
           bool of_journey) {
    store::SessionCommit commit;
    commit.key = world_.session_key();
    commit.key.user_id = user;
    commit.after.key = commit.key;
    commit.after.position = {1, 0, ++offset_};
    model::FollowUp waits;
    waits.id = id;
    waits.session = commit.key;
    waits.due_at = world_.clock.now() + in;
    waits.plan.of_journey = of_journey;
    waits.plan.expires_at = waits.due_at + 1h;
    commit.follow_ups.added.push_back(waits);
    world_.commit_now(std::move(commit));
  }
  Response list(HeaderList query = {}) {
    query.emplace_back("projectId", world_.session_key().project_id);
    return world_.manage(Method::get, "/management/timers", nullptr, std::move(query));
  }
  std::vector<std::string> ids(HeaderList query = {}) {
    std::vector<std::string> list_of_ids;
    const auto body = json::parse(list(std::move(query)).body);
    for (const auto& item : body["items"]) list_of_ids.push_back(item["_id"]);
    return list_of_ids;
  }
  std::string proactive() const {
    return "/management/projects/" + world_.session_key().project_id + "/proactive";
  }
  // Stores the result of a set-up's steps. With `done` the set-up's job is done.
  void set_up(bool done) {
    const auto project = world_.session_key().project_id;
    const model::Job job{.id = model::new_id(),
                         .project_id = project,
                         .type = std::string(model::proactive_setup),
                         .name = "Set-up",
                         .total_steps = 4,
                         .fail_reason = {},
                         .data = nullptr,
                         .created_at = world_.clock.now(),
                         .changed_at = world_.clock.now()};
    ASSERT_TRUE(world_.store->jobs().create(job));
    const auto leased = world_.store->jobs().lease(job.id, world_.clock.now() + 1min);
    ASSERT_TRUE(leased);
    ASSERT_TRUE(
        world_.store->committer().write_and_wait([&](store::Writer& writer) -> model::Result<void> {
          const auto id = model::new_id();
          auto added =
              store::Proactive::add_journey(writer, project, id, json{{"text", "Still there?"}});
          if (!added || !done) return added;
          store::Proactive::activate(writer, id);
          return world_.store->jobs().finish(writer, job.id, leased->fencing_token,
                                             model::JobState::done, "");
        }));
  }

  World world_;
  std::vector<model::Timestamp> told_;
  std::int64_t offset_ = 0;
};

using Ids = std::vector<std::string>;

TEST_F(Timers, AreListedByKindAndSessionPageByPage) {
  put("a-f0", "ann", 3h, true);
  put("b-f1", "bob", 1h, false);
  EXPECT_EQ(ids(), (Ids{"b-f1", "a-f0"}));
  EXPECT_EQ(ids({{"kind", "journey"}}), (Ids{"a-f0"}));
  EXPECT_EQ(ids({{"URLToken", token('a')},
                 {"userId", "bob"},
                 {"sessionId", world_.session_key().session_id}}),
            (Ids{"b-f1"}));
  const auto first = json::parse(list({{"limit", "1"}}).body);
  EXPECT_EQ(first["items"][0]["kind"], "followUp");
  EXPECT_EQ(first["items"][0]["userId"], "bob");
  EXPECT_EQ(ids({{"after", first["next"].get<std::string>()}}), (Ids{"a-f0"}));
  for (const HeaderList& wrong :
       {HeaderList{{"kind", "nap"}}, HeaderList{{"after", "x"}}, HeaderList{{"after", "12"}},
        HeaderList{{"userId", "bob"}}, HeaderList{{"limit", "0"}}}) {
    EXPECT_GE(list(wrong).status, 400) << wrong[0].first;
    EXPECT_LT(list(wrong).status, 500) << wrong[0].first;
  }
}

TEST_F(Timers, AreTakenBackOnce) {
  put("a-f0", "ann", 3h, true);
  const auto cancel = [&] {
    return world_.manage(Method::delete_, "/management/timers/a-f0").status;
  };
  EXPECT_EQ(cancel(), 204);
  EXPECT_EQ(cancel(), 404);
  EXPECT_TRUE(ids().empty());
}

TEST_F(Timers, ArePutOffAndTheSchedulerKnows) {
  put("a-f0", "ann", 3h, true);
  const auto put_off = [&](const json& body) {
    return world_.manage(Method::post, "/management/timers/a-f0/reschedule", body);
  };
  const auto moved = put_off({{"in", "10m"}});
  ASSERT_EQ(moved.status, 200) << moved.body;
  const auto due = world_.clock.now() + 10min;
  EXPECT_EQ(json::parse(moved.body)["dueAt"],
            std::chrono::floor<std::chrono::seconds>(due).time_since_epoch().count());
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_EQ(told_[0], due);
  EXPECT_EQ(put_off({{"in", "5h"}}).status, 409) << "the follow-up would expire first";
  EXPECT_EQ(put_off({{"cron", "* * * * *"}}).status, 409) << "it is no schedule";
  EXPECT_EQ(put_off(json::object()).status, 400);
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(Timers, OfAJourneyGoWhenFollowUpIsSwitchedOff) {
  set_up(true);
  put("a-f0", "ann", 3h, true);
  put("b-f1", "bob", 1h, false);
  EXPECT_EQ(json::parse(world_.manage(Method::get, proactive()).body)["state"], "on");
  const auto off = world_.manage(Method::post, proactive(), {{"on", false}});
  ASSERT_EQ(off.status, 200) << off.body;
  EXPECT_EQ(json::parse(off.body)["state"], "off");
  EXPECT_EQ(json::parse(off.body)["withdrawn"], 1);
  EXPECT_EQ(ids(), (Ids{"b-f1"})) << "a follow-up of a Node stays";
  const auto on = world_.manage(Method::post, proactive(), {{"on", true}});
  EXPECT_EQ(json::parse(on.body)["state"], "on");
  EXPECT_EQ(world_.manage(Method::post, proactive(), {{"on", "yes"}}).status, 400);
}

TEST_F(Timers, FollowUpIsSwitchedOnWhereItIsSetUpOnly) {
  EXPECT_EQ(json::parse(world_.manage(Method::get, proactive()).body)["state"], "notSetUp");
  EXPECT_EQ(world_.manage(Method::post, proactive(), {{"on", true}}).status, 409);
  EXPECT_EQ(world_.manage(Method::post, proactive(), {{"on", false}}).status, 200);
  set_up(false);
  EXPECT_EQ(world_.manage(Method::post, proactive(), {{"on", true}}).status, 409);
  EXPECT_EQ(world_.manage(Method::post, proactive(), {{"on", false}}).status, 409)
      << "the running set-up would switch it on";
}

}  // namespace
}  // namespace conversed::api
