#include "daemon/delivery/webhook.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "daemon/service/backoff.h"
#include "store/model/trace.h"
#include "store/text/base64.h"

namespace conversed::daemon {
namespace {

const std::string span_id = "00f067aa0ba902b7";

using namespace std::chrono_literals;

model::Output output() {
  return {.id = "abc-1",
          .seq = 7,
          .input_id = "abc",
          .text = "Hi \"you\"\n\xf0\x9f\x98\x80",
          .data = {{"n", 1}},
          .trace_id = "0af7651916cd43dd8448eb211c80319c"};
}

std::string header(const std::vector<std::pair<std::string, std::string>>& headers,
                   const std::string& name) {
  const auto found = std::find_if(headers.begin(), headers.end(),
                                  [&](const auto& header) { return header.first == name; });
  return found == headers.end() ? "(none)" : found->second;
}

std::string base64(std::string_view bytes) {
  return text::encode_base64(bytes, text::Base64::standard);
}

WebhookKey key_of(const std::string& bytes) {
  return *WebhookKey::of("whsec_" + base64(bytes));
}

// The example that libraries of Standard Webhooks test against.
TEST(Webhook, SignatureIsThatOfTheSpecification) {
  const auto key = *WebhookKey::of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  EXPECT_EQ(key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})"),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(Webhook, SecretThatReceiversWouldReadDifferentlyIsRefused) {
  const auto problem = [](const std::string& secret) {
    const auto key = WebhookKey::of(secret);
    return key ? "none" : key.error().message.substr(0, key.error().message.find(';'));
  };
  EXPECT_EQ(problem("very-secret-hook-of-the-shop"),
            "a webhook's secret begins with 'whsec_', else receivers' libraries sign differently");
  const std::string no_base64 = "a webhook's secret has base64 with its padding behind 'whsec_'";
  EXPECT_EQ(problem("whsec_"), no_base64);
  EXPECT_EQ(problem("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS"), no_base64);
  EXPECT_EQ(problem("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_"), no_base64);
  EXPECT_EQ(problem("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAB=="), no_base64) << "surplus bits";
  EXPECT_EQ(problem("whsec_c2hvcnQ="), "a webhook's secret stands for 24 to 64 bytes, not 5");
  EXPECT_EQ(problem("whsec_" + base64(std::string(65, 'x'))),
            "a webhook's secret stands for 24 to 64 bytes, not 65");
  EXPECT_EQ(problem("whsec_" + base64(std::string(64, 'x'))), "none");
  EXPECT_EQ(problem("whsec_" + base64(std::string(25, 'x'))), "none");
}

TEST(Webhook, NewSecretsDifferAndAreGood) {
  const auto secret = new_webhook_secret();
  EXPECT_TRUE(WebhookKey::of(secret));
  EXPECT_NE(secret, new_webhook_secret());
}

TEST(Webhook, EverySignedPartCounts) {
  const auto key = key_of(std::string(24, 'k'));
  const auto signature = key.sign("id", 10, "body");
  EXPECT_NE(key.sign("ie", 10, "body"), signature);
  EXPECT_NE(key.sign("id", 11, "body"), signature);
  EXPECT_NE(key.sign("id", 10, "bodz"), signature);
}

TEST(Webhook, BodyHasTheOutputAndItsSession) {
  const model::SessionKey session{"p", "e", "user \"1\"", "s"};
  const auto body = nlohmann::json::parse(webhook_body(session, output()));
  EXPECT_EQ(body, (nlohmann::json{{"userId", "user \"1\""},
                                  {"sessionId", "s"},
                                  {"output",
                                   {{"text", "Hi \"you\"\n\xf0\x9f\x98\x80"},
                                    {"data", {{"n", 1}}},
                                    {"traceId", "0af7651916cd43dd8448eb211c80319c"},
                                    {"source", "bot"}}}}));
  auto without = output();
  without.data = nullptr;
  EXPECT_TRUE(nlohmann::json::parse(webhook_body(session, without))["output"]["data"].is_null());
}

TEST(Webhook, HeadersNameTheOutputItsOrderAndItsTrace) {
  const auto key = key_of(std::string(24, 'k'));
  const auto now = model::from_unix_ms(1'614'265'330'999);
  const auto headers = webhook_headers(output(), std::span(&key, 1), now, "body", span_id);
  EXPECT_EQ(header(headers, "webhook-id"), "abc-1");
  EXPECT_EQ(header(headers, "webhook-timestamp"), "1614265330");
  EXPECT_EQ(header(headers, "webhook-signature"), key.sign("abc-1", 1614265330, "body"));
  EXPECT_EQ(header(headers, "X-Conversed-Sequence"), "7");
  EXPECT_EQ(header(headers, "Content-Type"), "application/json; charset=utf-8");
  const auto trace = header(headers, "traceparent");
  EXPECT_EQ(trace, "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01");
  EXPECT_EQ(header(webhook_headers(output(), {}, now, "body", span_id), "webhook-signature"),
            "(none)");
  auto unsampled = output();
  unsampled.input_id = model::new_event_id(now, false);
  EXPECT_EQ(header(webhook_headers(unsampled, {}, now, "body", span_id), "traceparent"),
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00");
}

TEST(Webhook, TwoKeysMakeTwoSignatures) {
  std::vector<WebhookKey> keys;
  keys.push_back(key_of(std::string(24, 'n')));
  keys.push_back(key_of(std::string(24, 'o')));
  const auto now = model::from_unix_ms(1'614'265'330'999);
  EXPECT_EQ(
      header(webhook_headers(output(), keys, now, "body", span_id), "webhook-signature"),
      keys[0].sign("abc-1", 1614265330, "body") + " " + keys[1].sign("abc-1", 1614265330, "body"));
}

TEST(WebhookHeaders, InvalidTraceIsReplaced) {
  auto traced = output();
  const auto now = model::from_unix_ms(1'614'265'330'000);
  traced.trace_id = "0af7651916cd43dd8448eb211c80319c";
  EXPECT_EQ(header(webhook_headers(traced, {}, now, "body", span_id), "traceparent").substr(0, 36),
            "00-0af7651916cd43dd8448eb211c80319c-");
  traced.trace_id = "a\r\nX-Injected: yes";
  const auto replaced = header(webhook_headers(traced, {}, now, "body", span_id), "traceparent");
  EXPECT_EQ(replaced.size(), 55U);
  EXPECT_TRUE(model::is_trace_id(replaced.substr(3, 32))) << replaced;
}

TEST(Backoff, DoublesUpToItsEnd) {
  const BackoffSettings settings;
  EXPECT_EQ(backoff(settings, 1, {}, 0), 1s);
  EXPECT_EQ(backoff(settings, 2, {}, 0), 2s);
  EXPECT_EQ(backoff(settings, 5, {}, 0), 16s);
  EXPECT_EQ(backoff(settings, 9, {}, 0), 256s);
  EXPECT_EQ(backoff(settings, 10, {}, 0), 300s);
  EXPECT_EQ(backoff(settings, 1'000'000, {}, 0), 300s);
}

TEST(Backoff, JitterAddsAQuarterAtMost) {
  const BackoffSettings settings;
  for (std::uint64_t random = 0; random < 3000; random += 7) {
    EXPECT_GE(backoff(settings, 3, {}, random), 4s);
    EXPECT_LE(backoff(settings, 3, {}, random), 5s);
  }
}

TEST(Backoff, RetryAfterProlongsWithinABound) {
  const BackoffSettings settings;
  EXPECT_EQ(backoff(settings, 1, 30s, 0), 30s);
  EXPECT_EQ(backoff(settings, 9, 1s, 0), 256s);
  EXPECT_EQ(backoff(settings, 1, std::chrono::seconds::max(), 0), 1h);
}

}  // namespace
}  // namespace conversed::daemon
