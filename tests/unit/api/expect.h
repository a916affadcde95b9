// Expectations of answers that tests of operations share.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "api/http/http.h"

namespace conversed::api::test {

inline nlohmann::json body_of(const Response& response) {
  return nlohmann::json::parse(response.body);
}

inline void expect_reduced(const Response& response, int status) {
  EXPECT_EQ(response.status, status) << response.body;
  const auto body = body_of(response);
  EXPECT_EQ(body.size(), 4U) << response.body;
  EXPECT_EQ(body.value("status", 0), status);
  EXPECT_TRUE(body.contains("detail") && body.contains("code") && body.contains("type"));
}

inline void expect_problem(const Response& response, int status) {
  EXPECT_EQ(response.status, status) << response.body;
  EXPECT_EQ(response.content_type, "application/problem+json");
  EXPECT_TRUE(body_of(response).contains("traceId")) << response.body;
}

}  // namespace conversed::api::test
