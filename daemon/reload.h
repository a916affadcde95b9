#pragma once

#include <string>

#include "config/keys.h"
#include "config/settings.h"
#include "store/runtime/live.h"

namespace conversed::api {
class InjectQuota;
class RateLimiter;
}  // namespace conversed::api

namespace conversed::daemon {

class HttpClient;

// The parts that take new settings while they run, for the keys that the table of settings marks.
// Kept by: test_service.py Reload.
struct ReloadableParts {
  api::RateLimiter& rate_limiter;
  api::RateLimiter& public_limiter;
  api::InjectQuota& injects;
  const model::Live<config::QuotaSettings>& quota;
  HttpClient& webhooks;
  HttpClient& upstreams;
};

// Gives the settings, which already hold the changes in `reloaded`, to the parts and to the log,
// and logs which changes need a restart. The result is one line for people. One thread at a time.
std::string reload_parts(const config::Settings& settings, const config::Reloaded& reloaded,
                         const ReloadableParts& parts);

}  // namespace conversed::daemon
