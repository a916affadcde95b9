// Turns of Flows in a ramp: which version they run, and how they are counted.
#include "flows/turn/share.h"
#include "tests/unit/daemon/turn_batch_world.h"

namespace conversed::daemon {
namespace {

class FlowRampTurns : public TurnBatchTest {
 protected:
  void SetUp() override {
    TurnBatchTest::SetUp();
    import_held("two");
    flow_ = id_of("Count");
  }

  void import_held(const std::string& version) {
    std::string text = batch_bundle;
    text.replace(text.find("VERSION"), 7, version);
    text.replace(text.find("hello"), 5, "hello " + version);
    auto bundle = flows::load_bundle(text, "shop.yaml", [](auto) -> std::optional<std::string> {
      return "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    });
    ASSERT_TRUE(bundle) << flows::to_string(bundle.error());
    ASSERT_TRUE(
        store_->assets().import_bundle(organisation_, *bundle, {}, {}, store::NewVersions::held));
  }
  std::string id_of(const std::string& flow) {
    const auto flows = store_->assets().flows(key_.project_id);
    for (const auto& each : *flows) {
      if (each.name == flow) return each.id;
    }
    return {};
  }
  void ramp(std::int64_t share) { ramp(flow_, share); }
  void ramp(const std::string& flow, std::int64_t share) {
    const auto set = store_->assets().set_ramp({flow, 2, share});
    ASSERT_TRUE(set) << set.error().message;
  }
  store::RampInfo state() { return **store_->assets().ramp(flow_); }
  // The answer to a new session's message.
  std::string said(const std::string& session_id, const std::string& text = "x") {
    key_ = session("plain", session_id);
    run({event(text)});
    return texts().empty() ? std::string() : texts().back();
  }
  // Goes to a session of the Endpoint that runs version 2 of the Flow.
  void enter_ramped(const std::string& flow, const std::string& endpoint) {
    const auto assets = **cache_->project(key_.project_id);
    for (int n = 0;; ++n) {
      key_ = session(endpoint, 's' + std::to_string(n));
      if (flows::version_for(assets, flow, key_) == 2) return;
    }
  }
  // Of the sessions s0, s1 ..., those that run version 2.
  std::vector<bool> ramped() {
    const auto assets = **cache_->project(key_.project_id);
    std::vector<bool> list;
    for (int n = 0; n < sessions; ++n) {
      const auto key = session("plain", 's' + std::to_string(n));
      list.push_back(flows::version_for(assets, flow_, key) == 2);
    }
    return list;
  }

  static constexpr int sessions = 20;
  std::string flow_;
};

TEST_F(FlowRampTurns, SessionsRunTheirVersionAndKeepItAsTheShareGrows) {
  EXPECT_EQ(said("s0"), "one x 1") << "no session runs a held version";
  ramp(30);
  const auto before = ramped();
  for (int round = 0; round < 2; ++round) {
    const auto now = ramped();
    for (int n = 0; n < sessions; ++n) {
      const bool is_ramped = now[static_cast<std::size_t>(n)];
      EXPECT_EQ(said('s' + std::to_string(n)).substr(0, 3), is_ramped ? "two" : "one") << n;
      EXPECT_TRUE(is_ramped || !before[static_cast<std::size_t>(n)]) << n;
    }
    ramp(70);
  }
  EXPECT_EQ(state().ramped.turns + state().stable.turns, 2 * sessions);
  ASSERT_TRUE(store_->assets().stop_ramp(flow_));
  for (int n = 0; n < sessions; ++n) {
    EXPECT_EQ(said('s' + std::to_string(n)).substr(0, 3), "one");
  }
}

TEST_F(FlowRampTurns, EachTurnIsCountedOnceForItsVersion) {
  ramp(50);
  enter_ramped(flow_, "plain");
  const std::vector records{record(event("x")), record(event("loop")), record(event("a"))};
  ASSERT_EQ(commit_now(build(records)), Outcome::committed);
  EXPECT_FALSE(build(records).changes) << "the log reads them again";
  EXPECT_EQ(texts(), (Texts{"two x 1", "two a 2"}));
  ASSERT_EQ(letters().size(), 1U);
  EXPECT_EQ(letters()[0].flow_version, 2);
  EXPECT_EQ(state().ramped.turns, 3);
  EXPECT_EQ(state().ramped.failures, 1);
  EXPECT_EQ(state().stable.turns, 0);
}

TEST_F(FlowRampTurns, AFailedCallIsAFailureAlsoIfItsNodeHandlesIt) {
  ramp(50);
  enter_ramped(flow_, "plain");
  const auto call = run({event("call")}).commit.calls.started.at(0).id;
  Event refused = result_of(call);
  refused.result->error_code = "status";
  refused.result->status = 500;
  run({refused});
  EXPECT_TRUE(letters().empty());
  EXPECT_EQ(state().ramped.turns, 2);
  EXPECT_EQ(state().ramped.failures, 1);
}

TEST_F(FlowRampTurns, AnExecutionEndsInTheVersionInWhichItBegan) {
  ramp(50);
  enter_ramped(flow_, "plain");
  const auto call = run({event("tell")}).commit.calls.started.at(0).id;
  ASSERT_TRUE(store_->assets().stop_ramp(flow_));
  run({result_of(call), event("b")});
  EXPECT_EQ(texts(), (Texts{"looking", "two tell 1", "one b 2"}));
}

TEST_F(FlowRampTurns, AnEnteredFlowHasARampOfItsOwn) {
  const auto greet = id_of("Greet");
  ramp(greet, 50);
  enter_ramped(greet, "trip");
  run({event("to Paris")});
  EXPECT_EQ(texts(), (Texts{"hello two"}));
  EXPECT_EQ((*store_->assets().ramp(greet))->ramped.turns, 1);
  EXPECT_FALSE(*store_->assets().ramp(id_of("Trip")));
  run({event("go")});
  EXPECT_EQ((*store_->assets().ramp(greet))->ramped.turns, 2) << "its Node has waited";
}

TEST_F(FlowRampTurns, WithoutARampNothingIsCounted) {
  EXPECT_TRUE(run({event("a")}).commit.ramps.empty());
}

}  // namespace
}  // namespace conversed::daemon
