#include "api/http/error_reply.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace conversed::api {
namespace {

using model::Errc;

const ExchangeContext context{.instance = "/v2.0/x", .trace_id = std::string(32, 'a')};
const model::Timestamp some_time = model::from_unix_ms(784111777000);

struct ErrcCase {
  Errc code;
  int status;
  std::string type;
  int number;
};

class EachErrc : public testing::TestWithParam<ErrcCase> {};

TEST_P(EachErrc, HasItsStatusTypeTitleAndCode) {
  const auto& [code, status, type, number] = GetParam();
  const auto response = error_response({code, "because"}, context, some_time);
  EXPECT_EQ(response.status, status);
  EXPECT_EQ(response.content_type, "application/problem+json");
  const auto body = nlohmann::json::parse(response.body);
  EXPECT_EQ(body["type"], type);
  EXPECT_EQ(body["title"], status == 500 ? type : type + " Error");
  EXPECT_EQ(body["status"], status);
  EXPECT_EQ(body["code"], number);
  EXPECT_TRUE(body["code"].is_number());
  EXPECT_EQ(body["instance"], "/v2.0/x");
  EXPECT_EQ(body["traceId"], std::string(32, 'a'));
  EXPECT_EQ(body["details"], nlohmann::json::object());
  EXPECT_EQ(body.contains("logLevel"), status == 404);
  EXPECT_EQ(body["detail"] == "because", code != Errc::internal);
  EXPECT_EQ(body.size(), status == 404 ? 9U : 8U);
}

INSTANTIATE_TEST_SUITE_P(
    ErrorReply, EachErrc,
    testing::Values(ErrcCase{Errc::invalid_argument, 400, "Bad Request", 1000},
                    ErrcCase{Errc::unauthenticated, 401, "Unauthorized", 401},
                    ErrcCase{Errc::quota_exhausted, 402, "Payment Required", 402},
                    ErrcCase{Errc::permission_denied, 403, "Forbidden", 1000},
                    ErrcCase{Errc::not_found, 404, "Not Found", 1000},
                    ErrcCase{Errc::conflict, 409, "Conflict", 1004},
                    ErrcCase{Errc::too_large, 413, "Payload Too Large", 1000},
                    ErrcCase{Errc::too_many, 429, "Too Many Requests", 429},
                    ErrcCase{Errc::internal, 500, "Internal Server Error", 1000},
                    ErrcCase{Errc::not_supported, 501, "Not Implemented", 1009},
                    ErrcCase{Errc::bad_upstream, 502, "Bad Gateway", 1000},
                    ErrcCase{Errc::unavailable, 503, "Service Unavailable", 503},
                    ErrcCase{Errc::timed_out, 504, "Gateway Timeout", 1000}));

TEST(ErrorReply, StatusesOutsideTheErrcTableAreTheDocumentedOnes) {
  EXPECT_EQ(reason_phrase(405), "Method Not Allowed");
  EXPECT_EQ(error_code(405), 1000);
  EXPECT_EQ(reason_phrase(408), "Request Timeout");
  EXPECT_EQ(error_code(408), 1000);
  EXPECT_EQ(error_code(429), 429);
  EXPECT_EQ(reason_phrase(415), "Unsupported Media Type");
  EXPECT_EQ(reason_phrase(431), "Request Header Fields Too Large");
  EXPECT_EQ(error_code(431), 1000);
}

TEST(ErrorReply, ReducedShapeHasItsFourFieldsOnly) {
  const auto response = error_response({Errc::not_found, "no such Endpoint"}, context, some_time,
                                       ErrorShape::reduced);
  EXPECT_EQ(
      nlohmann::json::parse(response.body),
      (nlohmann::json{
          {"status", 404}, {"code", 1000}, {"type", "Not Found"}, {"detail", "no such Endpoint"}}));
}

TEST(ErrorReply, DetailsAreCarried) {
  const nlohmann::json details{{"taskId", "t"}};
  const auto response =
      error_response(409, "it runs", context, some_time, ErrorShape::problem, &details);
  EXPECT_EQ(nlohmann::json::parse(response.body)["details"]["taskId"], "t");
}

TEST(ErrorReply, RetryAfterIsAnHttpDate) {
  for (const Errc code : {Errc::too_many, Errc::unavailable}) {
    const auto response = error_response({code, ""}, context, some_time);
    ASSERT_EQ(response.headers.size(), 1U);
    EXPECT_EQ(response.headers[0].first, "Retry-After");
    EXPECT_EQ(response.headers[0].second, "Sun, 06 Nov 1994 08:49:39 GMT");
  }
}

TEST(ErrorReply, UnauthorizedSaysHowToAuthenticate) {
  const auto response = error_response({Errc::unauthenticated, ""}, context, some_time);
  ASSERT_EQ(response.headers.size(), 1U);
  EXPECT_EQ(response.headers[0].first, "WWW-Authenticate");
}

TEST(ErrorReply, BytesThatAreNotUtf8DoNotBreakTheBody) {
  const auto response =
      error_response({Errc::invalid_argument, "bad \xFF\xFE"}, context, some_time);
  EXPECT_TRUE(nlohmann::json::accept(response.body));
}

}  // namespace
}  // namespace conversed::api
