// Contact-center tokens, from requests to answers.
#include <gtest/gtest.h>

#include "tests/unit/api/api_world.h"

namespace conversed::api {
namespace {

using test::World;

TEST(ContactCenter, TokenActsAsTheUserOfItsSubject) {
  test::WorldSettings settings;
  settings.contact_center.secret = config::Secret("01234567890123456789012345678901");
  World world(settings);
  // {"alg":"HS256"}.{"sub":"ANN@acme.example","exp":4102444800}, signed by another implementation.
  const std::string token =
      "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJBTk5AYWNtZS5leGFtcGxlIiwiZXhwIjo0MTAyNDQ0ODAwfQ."
      "q0CWV45A0cSjuVaWIi5sYgZMUDEuEzOA9AGcOOOKT-8";
  const auto ask = [&](const std::string& value) {
    return world
        .call({Method::post,
               "/v2.0/endpoint/inject",
               {{"x-contactcenter-authorization", value}},
               test::message().dump(),
               {}})
        .status;
  };
  EXPECT_EQ(ask("Bearer " + token), 200);
  EXPECT_EQ(ask(token), 401) << "the word Bearer belongs to it";
  EXPECT_EQ(ask("Bearer " + token + "A"), 401);
}

}  // namespace
}  // namespace conversed::api
