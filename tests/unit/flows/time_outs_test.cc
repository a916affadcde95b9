#include "flows/turn/standing.h"

#include <gtest/gtest.h>

#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using namespace std::chrono_literals;

constexpr const char* asks = R"(
- id: ask
  question:
    text: "How many?"
    type: integer
    storeIn: context.count
    reprompt: "A number!"
    maxAttempts: 2
    timeout: 10m
    onNoAnswer: [{say: "none"}, {stop: true}]
- say: "got {{context.count}}"
- stop: true
)";

TEST(TimeOuts, QuestionSaysUntilWhenItWaits) {
  Conversation talk(asks);
  const auto asked = talk.say("hi");
  ASSERT_TRUE(asked && asked->time_out);
  EXPECT_EQ(asked->time_out->due_at, talk.now + 10min);
  EXPECT_EQ(asked->time_out->id, "event1-w");
  EXPECT_EQ(asked->time_out->session, asked->session.key);
  EXPECT_TRUE(asked->time_out->is_time_out);
  EXPECT_EQ(time_outs_of(talk.session), (Texts{"event1-w"}));
  const auto answered = talk.say("3");
  EXPECT_EQ(texts(answered), (Texts{"got 3"}));
  EXPECT_FALSE(answered->time_out);
  EXPECT_TRUE(time_outs_of(talk.session).empty());
}

TEST(TimeOuts, OneWithoutABranchCountsAsAnAttempt) {
  Conversation talk(asks);
  ASSERT_TRUE(talk.say("hi"));
  const auto again = talk.let_question_time_out();
  EXPECT_EQ(texts(again), (Texts{"A number!"}));
  ASSERT_TRUE(again->time_out);
  ASSERT_TRUE(talk.say("3"));
  EXPECT_EQ(talk.session.context["count"], 3);
  ASSERT_TRUE(talk.say("hi"));
  ASSERT_TRUE(talk.say("many"));
  EXPECT_EQ(texts(talk.let_question_time_out()), (Texts{"none"}));
  EXPECT_EQ(talk.session.context["count"], nullptr);
  EXPECT_TRUE(time_outs_of(talk.session).empty());
}

TEST(TimeOuts, BranchRunsAndTheFlowGoesOnBehindIt) {
  Conversation talk(R"(
- question:
    text: "Still there?"
    timeout: 1s
    storeIn: context.answer
    onTimeout: [{say: "{{input.source}} {{input.text}}"}]
- say: "on"
)");
  ASSERT_TRUE(talk.say("hi"));
  EXPECT_EQ(texts(talk.let_question_time_out()), (Texts{"timeOut ", "on"}));
  EXPECT_FALSE(talk.session.context.contains("answer")) << "a time-out stores no answer";
}

TEST(TimeOuts, EachHasTheIdOfTheInputThatLedToIt) {
  Conversation talk(R"(
- id: ask
  question: {text: "Well?", timeout: 1s, onTimeout: [{goTo: ask}]}
)");
  auto last = talk.say("hi");
  for (int i = 1; i <= 3; ++i) {
    ASSERT_TRUE(last && last->time_out) << last.error().message;
    EXPECT_EQ(last->time_out->id, "event" + std::to_string(i) + "-w");
    auto fired = talk.event(model::EventType::time_out);
    fired.claim = model::Claim{model::Claim::Kind::timer, last->time_out->id};
    last = talk.take(fired);
  }
}

TEST(TimeOuts, InjectThatIsNoAnswerDoesNotRestartTheTime) {
  Conversation talk(asks);
  ASSERT_TRUE(talk.say("hi"));
  const auto after = talk.inject({{"event", "packed"}});
  EXPECT_EQ(texts(after), (Texts{"A number!"}));
  EXPECT_FALSE(after->time_out);
  EXPECT_EQ(time_outs_of(talk.session), (Texts{"event1-w"}));
}

// The inject leads to the question again, which is asked anew.
TEST(TimeOuts, InjectThatLeadsBackToTheQuestionAsksItAnew) {
  Conversation talk(R"(
- id: ask
  question: {text: "Well?", timeout: 1m, escapeIf: input.source == "inject", onEscape: [{goTo: ask}]}
)");
  ASSERT_TRUE(talk.say("hi"));
  const auto after = talk.inject({{"event", "packed"}});
  ASSERT_TRUE(after && after->time_out);
  EXPECT_EQ(time_outs_of(talk.session), (Texts{"event2-w"}));
}

TEST(TimeOuts, OneForAnAnsweredQuestionIsAConflict) {
  Conversation talk(asks);
  ASSERT_TRUE(talk.say("hi"));
  auto late = talk.event(model::EventType::time_out);
  late.claim = model::Claim{model::Claim::Kind::timer, time_outs_of(talk.session).at(0)};
  ASSERT_TRUE(talk.say("3"));
  const auto refused = talk.take(late);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, model::Errc::conflict);
  late.claim.reset();
  EXPECT_FALSE(talk.take(late));
}

TEST(TimeOuts, ReadsStoredStateOfAnyShape) {
  model::Session session;
  for (const char* state : {"null", "[]", "{\"waiting\":3}", "{\"waiting\":{\"timer\":7}}"}) {
    session.flow_state = nlohmann::json::parse(state);
    EXPECT_TRUE(time_outs_of(session).empty()) << state;
    EXPECT_FALSE(waits_for_time_out(session, "")) << state;
    forget_time_out(session.flow_state, "x");
    EXPECT_EQ(session.flow_state, nlohmann::json::parse(state));
  }
}

TEST(TimeOuts, BranchWithoutATimeIsRefused) {
  const auto bundle = load_bundle(
      "conversed: 1\nproject: {name: T}\nflows:\n"
      "- name: F\n  nodes: [{question: {text: a, onTimeout: [{say: b}]}}]\n",
      "t.yaml", {});
  ASSERT_FALSE(bundle);
  EXPECT_NE(to_string(bundle.error()).find("never run without 'timeout'"), std::string::npos);
}

}  // namespace
}  // namespace conversed::flows
