#include "store/model/event.h"

#include <gtest/gtest.h>

#include "store/model/ids.h"
#include "store/model/session.h"
#include "store/model/session_keys.h"
#include "store/model/trace.h"

namespace conversed::model {
namespace {

Event sample() {
  Event event;
  event.id = "event";
  event.type = EventType::call_result;
  event.session = {"p", "e", "user", "session"};
  event.accepted_at = from_unix_ms(1234567890123);
  event.trace_id = "0af7651916cd43dd8448eb211c80319c";
  event.tracestate = "congo=t61rcWkgMzE";
  event.text = std::string("a\0\xE2\x82\xAC", 5);
  event.data = {{"n", 1}, {"deep", {1, nullptr, "x"}}};
  event.claim = Claim{Claim::Kind::pending_call, "call"};
  event.result = CallResult{.call_id = "call",
                            .status = 503,
                            .body = {{"why", "down"}},
                            .error_code = "status",
                            .error_message = "503",
                            .model_tokens = 42};
  return event;
}

Result<Event> round_trip(const Event& event) {
  return decode_event(event.session.encode(), event.id, to_string(event.type), event.trace_id,
                      encode_value(event));
}

TEST(Event, SurvivesItsRecord) {
  const auto event = sample();
  const auto back = round_trip(event);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->id, event.id);
  EXPECT_EQ(back->type, event.type);
  EXPECT_EQ(back->session, event.session);
  EXPECT_EQ(back->accepted_at, event.accepted_at);
  EXPECT_EQ(back->trace_id, event.trace_id);
  EXPECT_EQ(back->tracestate, event.tracestate);
  EXPECT_EQ(back->text, event.text);
  EXPECT_EQ(back->data, event.data);
  EXPECT_EQ(back->claim, event.claim);
  ASSERT_TRUE(back->result);
  EXPECT_EQ(back->result->body, event.result->body);
  EXPECT_EQ(back->result->error_code, event.result->error_code);
  EXPECT_EQ(back->result->model_tokens, 42);
}

TEST(Event, ItsOriginSurvivesItsRecord) {
  auto event = sample();
  event.origin = {
      .daemon = "one", .user_id = "operator", .key = "hash", .organisation_id = "organisation"};
  const auto back = round_trip(event);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->origin, event.origin);
}

TEST(Event, MalformedTracestateIsDropped) {
  auto event = sample();
  event.tracestate = "a=1\r\nX: y";
  EXPECT_EQ(round_trip(event)->tracestate, "");
}

TEST(Event, InvalidTraceIsReplaced) {
  const std::vector<std::string> none{"",
                                      "t",
                                      std::string(32, '0'),
                                      std::string(31, 'a'),
                                      std::string(32, 'A'),
                                      "a\r\nX: y",
                                      std::string(500, 'a')};
  for (const auto& text : none) {
    auto event = sample();
    event.trace_id = text;
    const auto back = round_trip(event);
    ASSERT_TRUE(back) << text;
    EXPECT_TRUE(is_trace_id(back->trace_id)) << text;
  }
}

TEST(Event, AbsentPartsStayAbsent) {
  Event event;
  event.session = {"p", "e", "u", "s"};
  const auto back = round_trip(event);
  ASSERT_TRUE(back);
  EXPECT_FALSE(back->text);
  EXPECT_TRUE(back->data.is_null());
  EXPECT_FALSE(back->claim);
  EXPECT_FALSE(back->result);
}

TEST(Event, DamagedRecordIsAnErrorNotAnAbort) {
  const auto key = sample().session.encode();
  const auto decode = [&](std::string_view value) {
    return decode_event(key, "id", "inject", "t", value);
  };
  for (const char* value : {"",
                            "{",
                            "[]",
                            "1",
                            "{}",
                            R"({"v":2,"at":0})",
                            R"({"v":1,"at":"x"})",
                            R"({"v":1,"at":0,"text":1})",
                            R"({"v":1,"at":0,"claim":{"kind":"x"}})",
                            R"({"v":1,"at":0,"claim":1})",
                            R"({"v":1})",
                            R"({"v":1,"at":null})",
                            R"({"v":1,"at":-1})",
                            R"({"v":1,"at":1.5})",
                            R"({"v":1,"at":1e300})",
                            R"({"v":1,"at":1700000000000000})",
                            R"({"v":1,"at":253402300800000})",
                            R"({"v":1,"at":9223372036854775807})",
                            R"({"v":1,"at":18446744073709551615})",
                            R"({"v":1,"at":-9223372036854775808})"}) {
    EXPECT_FALSE(decode(value)) << value;
  }
  EXPECT_TRUE(decode(R"({"v":1,"at":0})"));
  EXPECT_FALSE(decode_event("p", "id", "inject", "t", R"({"v":1,"at":0})"));
  EXPECT_FALSE(decode_event(key, "id", "unknown", "t", R"({"v":1,"at":0})"));
}

Event message_until(Timestamp until) {
  Event event;
  event.id = new_id();
  event.type = EventType::user_message;
  event.session = {"p", "e", "u", "s"};
  event.accepted_at = from_unix_ms(1'700'000'000'000);
  event.text = "hi";
  event.answer_until = until;
  return event;
}

TEST(Event, AMessageHasTheDeadlineOfItsAnswer) {
  const auto event = message_until(from_unix_ms(1'700'000'030'000));
  EXPECT_EQ(round_trip(event)->answer_until, event.answer_until);
  auto inject = event;
  inject.type = EventType::inject;
  EXPECT_FALSE(round_trip(inject)->answer_until);
}

TEST(Event, AnImpossibleDeadlineIsIgnored) {
  const auto event = message_until({});
  const auto decode = [&](std::string_view id, const std::string& until) {
    return decode_event(event.session.encode(), id, "userMessage", "t",
                        R"({"v":1,"at":1700000000000,"text":"hi","answerUntil":)" + until + "}");
  };
  EXPECT_TRUE(decode(event.id, "1700000001000")->answer_until);
  for (const std::string nonsense : {"null", "[]", "{}", "\"1700000001000\"", "-1", "1.5",
                                     "253402300800000", "9223372036854775807"}) {
    const auto decoded = decode(event.id, nonsense);
    ASSERT_TRUE(decoded) << nonsense;
    EXPECT_FALSE(decoded->answer_until) << nonsense;
  }
  EXPECT_FALSE(decode("mine", "1700000001000")->answer_until);
}

TEST(SessionKey, KeysOfAUserLieSideBySide) {
  const auto range = keys_of_user("p", "ann");
  const auto lies_in = [&](const SessionKey& key) { return range.contains(key.encode()); };
  EXPECT_TRUE(lies_in({"p", "e", "ann", "1"}));
  EXPECT_TRUE(lies_in({"p", "another", "ann", ""}));
  EXPECT_FALSE(lies_in({"p", "e", "anna", "1"}));
  EXPECT_FALSE(lies_in({"p", "e", "an", "1"}));
  EXPECT_FALSE(lies_in({"p", "ann", "e", "1"})) << "an Endpoint is no user";
  EXPECT_FALSE(lies_in({"pp", "e", "ann", "1"}));
  EXPECT_TRUE(keys_of_project("p").contains(SessionKey{"p", "e", "ann", "1"}.encode()));
  EXPECT_FALSE(keys_of_project("p").contains(SessionKey{"pp", "e", "ann", "1"}.encode()));
}

TEST(SessionKey, EncodesToFourPartsAndBack) {
  const SessionKey key{"p", "e", "user with \xC3\xBC", ""};
  EXPECT_EQ(*SessionKey::decode(key.encode()), key);
  EXPECT_FALSE(
      SessionKey::decode("a\x1f"
                         "b\x1f"
                         "c"));
  EXPECT_FALSE(
      SessionKey::decode("a\x1f"
                         "b\x1f"
                         "c\x1f"
                         "d\x1f"
                         "e"));
}

TEST(Execution, SurvivesItsJson) {
  Execution execution;
  execution.input_id = "i";
  execution.source = EventType::follow_up;
  execution.began_at = from_unix_ms(5);
  execution.pending_call_id = "c";
  execution.state = {{"x", 1}};
  execution.answer_until = from_unix_ms(7);
  execution.entered = {{"Sub", 3}};
  EXPECT_EQ(*execution_from(to_json(execution)), execution);
  EXPECT_FALSE(execution_from(nullptr));
}

}  // namespace
}  // namespace conversed::model
