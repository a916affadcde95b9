// The Flow that an Endpoint names for errors. tests/flows/apology.test.yaml has whole
// conversations.
#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

using model::EventType;
using nlohmann::json;

// Runs the Turn of the event, which fails, and then the Flow for errors, as the daemon does.
Result<model::Effects> fail_and_handle(Conversation& talk, const std::string& handler,
                                       const model::Event& event) {
  const auto before = talk.session;
  const auto failed = talk.take(event);
  if (failed) {
    ADD_FAILURE() << "the Turn has not failed";
    return failed;
  }
  const auto flow = named_flow("Handler", handler);
  auto effects = run_turn({.flow = *flow,
                           .assets = talk.assets,
                           .endpoint = talk.endpoint,
                           .session = before,
                           .profile = talk.profile,
                           .event = event,
                           .now = talk.now,
                           .limits = talk.limits,
                           .flow_version = 1,
                           .library = &talk.library,
                           .is_follow_up_flow = true,
                           .failure = &failed.error().message});
  if (effects) talk.session = effects->session;
  return effects;
}

constexpr const char* fails = "- forEach: context.none\n  item: context.i\n  do: [{say: never}]\n";

TEST(ErrorFlow, BeginsWithTheInputThatFailed) {
  Conversation talk(std::string("- {id: ask, question: {text: \"n?\", timeout: 1h}}\n") + fails);
  ASSERT_TRUE(talk.say("x"));
  const auto waiting = talk.session.flow_state["waiting"];
  auto event = talk.event(EventType::user_message);
  event.text = "seven";
  const auto effects = fail_and_handle(
      talk,
      "  - say: \"{{input.text}} {{input.source}} {{input.execution}} {{input.error.code}}\"\n"
      "  - say: \"{{input.error.message}}\"\n",
      event);
  EXPECT_EQ(
      texts(effects),
      (Texts{"seven user 2 turn_failed",
             "Flow 'Main', Node nodes[1] (forEach): there is no list; write `?? []` behind it "
             "if it may be missing"}));
  EXPECT_EQ(effects->outputs[0].id, event.id + "-1");
  EXPECT_EQ(talk.session.flow_state["waiting"], waiting) << "the question keeps waiting";
  EXPECT_TRUE(effects->execution_ended);
}

TEST(ErrorFlow, ContinuesTheNumbersOfItsExecution) {
  Conversation talk(
      "- say: a\n- say: b\n- followUp: {after: 1h, text: c}\n"
      "- httpRequest: {url: \"http://x.example/\", storeIn: context.r}\n");
  ASSERT_EQ(texts(talk.say("hi")), (Texts{"a", "b"}));
  auto event = talk.event(EventType::call_result);
  event.result = model::CallResult{.call_id = talk.session.execution->pending_call_id,
                                   .status = 500,
                                   .body = nullptr,
                                   .error_code = "http_status",
                                   .error_message = "500"};
  const auto effects =
      fail_and_handle(talk,
                      "  - say: \"sorry for {{input.text}}\"\n  - followUp: {after: 2h, text: d}\n"
                      "  - httpRequest: {url: \"http://x.example/\"}\n",
                      event);
  EXPECT_EQ(texts(effects), (Texts{"sorry for hi"}));
  EXPECT_EQ(effects->outputs[0].id, "event1-3");
  EXPECT_EQ(effects->outputs[0].input_id, "event1");
  EXPECT_EQ(effects->outputs[0].seq, 3);
  ASSERT_EQ(effects->follow_ups.size(), 1U);
  EXPECT_EQ(effects->follow_ups[0].id, "event1-f2");
  ASSERT_TRUE(effects->call);
  EXPECT_EQ(effects->call->id, "event1-c2");
  EXPECT_EQ(talk.session.execution->source, EventType::user_message);
  EXPECT_EQ(talk.session.flow_state["followUpFlow"], "Handler");
}

TEST(ErrorFlow, AsksBeforeTheQuestionThatKeepsWaiting) {
  Conversation talk(std::string("- {id: ask, question: {text: \"n?\", timeout: 1h}}\n") + fails);
  ASSERT_TRUE(talk.say("x"));
  auto event = talk.event(EventType::user_message);
  event.text = "seven";
  ASSERT_TRUE(fail_and_handle(talk, "  - {id: phone, question: {text: \"phone?\"}}\n", event));
  EXPECT_EQ(talk.session.flow_state["waiting"]["at"], "phone");
  EXPECT_EQ(talk.session.flow_state["behind"]["at"], "ask");
  EXPECT_EQ(time_outs_of(talk.session), (Texts{"event1-w"})) << "the time of the question runs";
}

TEST(ErrorFlow, TakesBadStoredStateForAnError) {
  for (const char* state : {"5", "{}", R"({"v": 1, "outputs": 1, "calls": 1, "turns": 1})"}) {
    Conversation talk("- httpRequest: {url: \"http://x.example/\"}\n");
    ASSERT_TRUE(talk.say("hi"));
    auto event = talk.event(EventType::call_result);
    event.result = model::CallResult{.call_id = talk.session.execution->pending_call_id,
                                     .status = 200,
                                     .body = nullptr,
                                     .error_code = "",
                                     .error_message = ""};
    talk.session.execution->state = json::parse(state);
    const auto effects = fail_and_handle(talk, "  - say: sorry\n", event);
    ASSERT_FALSE(effects) << state;
    EXPECT_EQ(effects.error().code, model::Errc::internal) << state;
  }
}

}  // namespace
}  // namespace conversed::flows
