// The body of an inject and of a user's message: what is accepted, what is refused, and the error
// for it.
#include "api/representation/input.h"

#include <gtest/gtest.h>

#include <string>

namespace conversed::api {
namespace {

using nlohmann::json;

const std::string url_token(64, 'a');

json good() {
  return {{"URLToken", url_token}, {"userId", "u"}, {"sessionId", "s"}, {"text", "hello"}};
}

TEST(MessageBody, TakesAMessageWhole) {
  auto body = good();
  body["data"] = {{"orderId", 7}};
  body["unknown"] = true;
  const auto message = parse_message(body.dump(), UrlTokenIn::body);
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(message->url_token, url_token);
  EXPECT_EQ(message->user_id, "u");
  EXPECT_EQ(message->session_id, "s");
  EXPECT_EQ(message->text, "hello");
  EXPECT_EQ(message->data, (json{{"orderId", 7}}));
}

TEST(MessageBody, TextOrDataSuffices) {
  auto text_only = good();
  text_only["data"] = nullptr;
  EXPECT_TRUE(parse_message(text_only.dump(), UrlTokenIn::body));
  auto data_only = good();
  data_only.erase("text");
  data_only["data"] = json::object();
  const auto message = parse_message(data_only.dump(), UrlTokenIn::body);
  ASSERT_TRUE(message);
  EXPECT_FALSE(message->text);
  EXPECT_TRUE(message->data.is_object());
}

TEST(MessageBody, UrlTokenIsFoundWhateverItsCase) {
  auto body = good();
  body["URLToken"] = std::string(64, 'A');
  EXPECT_EQ(parse_message(body.dump(), UrlTokenIn::body)->url_token, url_token);
}

TEST(MessageBody, WithATokenInThePathTheBodyNeedsNone) {
  auto body = good();
  body["URLToken"] = 5;
  EXPECT_TRUE(parse_message(body.dump(), UrlTokenIn::path));
}

TEST(MessageBody, NamesMayBeAnythingWithoutControlCharacters) {
  auto body = good();
  body["userId"] = "\xF0\x9F\x90\xB1 +49 (0) / \\ \" %00";
  body["sessionId"] = std::string(512, 'x');
  EXPECT_TRUE(parse_message(body.dump(), UrlTokenIn::body));
}

TEST(MessageBody, TextAndDataKeepControlCharacters) {
  auto body = good();
  body["text"] = std::string("a\0b\x01", 4);
  const auto message = parse_message(body.dump(), UrlTokenIn::body);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->text, std::string("a\0b\x01", 4));
}

struct Bad {
  const char* name;
  json value;  // discarded: removes the member
  const char* message;
};

TEST(MessageBody, EachWrongMemberIsNamed) {
  const json absent(json::value_t::discarded);
  const Bad table[] = {
      {"URLToken", absent, "URLToken is required"},
      {"URLToken", nullptr, "URLToken is required"},
      {"URLToken", 5, "URLToken must be a string"},
      {"URLToken", "abc", "URLToken must be 64 hexadecimal digits"},
      {"URLToken", std::string(64, 'g'), "URLToken must be 64 hexadecimal digits"},
      {"userId", absent, "userId is required"},
      {"userId", "", "userId must not be empty"},
      {"userId", 12, "userId must be a string"},
      {"userId", std::string(513, 'x'), "userId must have at most 512 bytes"},
      {"userId", "a\nb", "userId must not contain control characters"},
      {"userId",
       "a\x1F"
       "b",
       "userId must not contain control characters"},
      {"userId", "a\x7F", "userId must not contain control characters"},
      {"userId", "a\xC2\x85", "userId must not contain control characters"},
      {"sessionId", absent, "sessionId is required"},
      {"sessionId", "", "sessionId must not be empty"},
      {"sessionId", json::array(), "sessionId must be a string"},
      {"text", absent, "text or data is required"},
      {"text", nullptr, "text or data is required"},
      {"text", "", "text or data is required"},
      {"text", 5, "text must be a string"},
      {"data", "x", "data must be an object"},
      {"data", json::array({1}), "data must be an object"},
  };
  for (const Bad& bad : table) {
    json body = good();
    body.erase(bad.name);
    if (!bad.value.is_discarded()) body[bad.name] = bad.value;
    const auto message = parse_message(body.dump(), UrlTokenIn::body);
    ASSERT_FALSE(message) << bad.message;
    EXPECT_EQ(message.error().code, model::Errc::invalid_argument);
    EXPECT_EQ(message.error().message, bad.message);
  }
}

TEST(MessageBody, WhatIsNoJsonObjectIsRefused) {
  for (const std::string& text :
       {std::string(), std::string("null"), std::string("[]"), std::string("\"x\""),
        std::string("{"), std::string("{\"userId\":1e400}"), std::string(100'000, '['),
        std::string("{\"a\":1,\"a\":2}"), std::string("{\"userId\":\"\\ud800\"}"),
        std::string("{\"userId\":\"\xFF\"}")}) {
    const auto message = parse_message(text, UrlTokenIn::body);
    ASSERT_FALSE(message) << text.substr(0, 50);
    EXPECT_EQ(message.error().code, model::Errc::invalid_argument);
  }
}

// JSON Schema's `integer` takes 24.0.
TEST(WholeNumber, MayHaveAZeroFraction) {
  const auto read = [](const json& value) { return whole_number({{"n", value}}, "n", 1, 100); };
  EXPECT_EQ(read(24), 24);
  EXPECT_EQ(read(24.0), 24);
  for (const json& wrong : {json(0), json(101), json(2.5), json(1e300), json("24"), json()}) {
    ASSERT_FALSE(read(wrong)) << wrong;
    EXPECT_EQ(read(wrong).error().message, "n must be a whole number, 1 to 100");
  }
  EXPECT_EQ(whole_number({{"n", max_whole_number}}, "n", 1), max_whole_number);
  EXPECT_FALSE(whole_number({{"n", max_whole_number + 1}}, "n", 1));
  EXPECT_FALSE(whole_number(json::object(), "n", 1));
}

}  // namespace
}  // namespace conversed::api
