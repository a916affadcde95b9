#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "flows/journey.h"
#include "store/conversation/timers.h"
#include "store/jobs/proactive.h"
#include "tests/unit/daemon/turn_batch_world.h"

namespace conversed::daemon {

inline constexpr const char* follow_up_bundle = R"(
conversed: 1
project: {name: Shop, locales: [en]}
flows:
  - name: Talk
    nodes:
      - if: input.text == "ask"
        then:
          - id: name
            question: {text: "Your name?", storeIn: context.name}
          - say: "Hello {{context.name}}"
          - stop: true
      - if: input.text == "call"
        then: [{httpRequest: {method: GET, url: "https://example.com/", storeIn: context.order}}]
      - if: input.text == "bye"
        then: [{cancelFollowUp: true}]
      - if: input.text == "later"
        then: [{followUp: {after: 1h, text: "As you wished, {{input.text}}", expiresAfter: 2h}}]
      - if: input.text == "own"
        then:
          - followUp: {after: 1h, flow: Talk, text: ask}
          - question: {text: "Which?", storeIn: context.which}
          - say: "Got {{context.which}}"
          - stop: true
      - if: input.text == "quick"
        then:
          - id: quick
            question: {text: "Quick?", storeIn: context.quick, TIMEOUT}
          - say: "fast {{context.quick}}"
          - stop: true
      - if: input.text == "quick in a while"
        then:
          - question: {text: "Quick?", timeout: 50m,
                       onTimeout: [{say: "too late for {{input.source}}"}, {stop: true}]}
          - stop: true
      - if: input.text == "name in time"
        then:
          - question: {text: "In time?", timeout: 10m, maxAttempts: 4, reprompt: again,
                       onNoAnswer: [{say: "gave up"}, {stop: true}]}
          - stop: true
      - if: input.text == "pay"
        then:
          - waitForEvent: input.event.data.event == "paid"
          - say: Paid.
          - stop: true
      - if: input.text == "gather"
        then:
          - collect: {quiet: 10s, if: input.event.data.n, maxEvents: 3, maxWait: 1m}
          - say: "{{input.events.map(event => event.data.n).join(' ')}}"
          - stop: true
      - if: input.text == "survey"
        then: [{addToContext: {survey: "{{true}}"}}]
      - if: input.text == "slow"
        then: [{addToContext: {slow: "{{true}}"}}]
      - say: "echo {{input.text}}"
  - name: Nudge
    nodes:
      - say: "Still there?"
      - if: context.slow
        then:
          - httpRequest: {method: GET, url: "https://example.com/", storeIn: context.order}
          - say: "And now?"
      - if: context.deep
        then: [{executeFlow: Deep}]
      - if: context.survey
        then:
          - question: {text: "How was it?", storeIn: context.mood}
          - say: "Noted: {{context.mood}}"
  - name: Deep
    nodes:
      - question: {text: "How deep?", storeIn: context.depth}
endpoints:
  - {name: quiet, flow: Talk, sessionExpiry: 30m}
  - {name: hooked, flow: Talk, output: {webhook: {url: "https://example.com/hook"}}}
proactive: {journey: JOURNEY}
)";

inline constexpr const char* quick_time_out =
    R"(timeout: 10m, onTimeout: [{say: "too late for {{input.source}}"}, {stop: true}])";

// A project with follow-ups switched on. The test itself is the scheduler: it makes records of due
// follow-ups.
class FollowUpWorld : public TurnBatchTest {
 protected:
  void SetUp() override {
    TurnBatchTest::SetUp();
    set_up("{after: 20m, flow: Nudge, maxPerSession: 2, expiresAfter: 4h}");
  }

  // Stores the result of a set-up's steps.
  void set_up(const std::string& journey, const std::string& time_out = quick_time_out) {
    std::string text = follow_up_bundle;
    text.replace(text.find("JOURNEY"), 7, journey);
    text.replace(text.find("TIMEOUT"), 7, time_out);
    auto bundle = flows::load_bundle(text, "shop.yaml", [](auto) { return std::nullopt; });
    ASSERT_TRUE(bundle) << flows::to_string(bundle.error());
    auto report = store_->assets().import_bundle(organisation_, *bundle);
    ASSERT_TRUE(report) << report.error().message;
    report_ = *report;
    const std::string project = report_["project"]["_id"];
    auto written =
        store_->committer().write_and_wait([&](store::Writer& writer) -> model::Result<void> {
          writer.connection().script("DELETE FROM journeys; DELETE FROM proactive_tenants;");
          auto added = store_->proactive().add_tenant(
              writer, {.id = model::new_id(), .project_id = project});
          if (!added) return added;
          const auto id = model::new_id();
          added = store::Proactive::add_journey(writer, project, id,
                                                flows::complete_journey(bundle->proactive, "en"));
          if (!added) return added;
          store::Proactive::activate(writer, id);
          store_->assets().grow(writer);
          auto flow = store::Proactive::flow_named(writer, project, "Nudge");
          if (!flow) return model::fail(flow.error());
          return store::Proactive::attach(writer, project, *flow, "");
        });
    ASSERT_TRUE(written) << written.error().message;
    key_ = session("quiet", "s");
  }

  Event message(const std::string& text) { return event(text, EventType::user_message); }

  std::vector<model::FollowUp> waiting() {
    std::vector<model::FollowUp> found;
    const auto page =
        store_->first().timers().list({.project_id = key_.project_id, .session = key_}, {}, 1'000);
    for (const auto& row : page->rows) {
      if (auto follow_up = *store_->first().timers().follow_up(row.id)) found.push_back(*follow_up);
    }
    return found;
  }

  // The event of a follow-up as the Scheduler makes it now.
  Event due_event(const model::FollowUp& follow_up) {
    Event made;
    made.id = model::new_id(clock_.now());
    made.type = EventType::follow_up;
    made.session = follow_up.session;
    made.accepted_at = clock_.now();
    made.trace_id = follow_up.trace_id;
    made.text = follow_up.text;
    made.data = follow_up.data;
    made.claim = Claim{Claim::Kind::follow_up, follow_up.id};
    made.follow_up = follow_up.plan;
    return made;
  }

  // Lets time pass, and runs everything that falls due meanwhile.
  TurnBatch pass(std::chrono::milliseconds time) {
    clock_.advance(time);
    TurnBatch last;
    for (const auto& follow_up : waiting()) {
      if (follow_up.due_at <= timers_.now()) last = run({due_event(follow_up)});
    }
    return last;
  }
};

}  // namespace conversed::daemon
