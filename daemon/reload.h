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

// The parts that take other settings while they run, those of the keys that the table marks.
struct ReloadableParts {
  api::RateLimiter& rate_limiter;
  api::RateLimiter& public_limiter;
  api::InjectQuota& injects;
  const model::Live<config::QuotaSettings>& quota;
  HttpClient& webhooks;
  HttpClient& upstreams;
};

// Gives the settings, which hold already what `reloaded` says was taken over, to the parts and to
// the log, and logs what needs a restart. The result is one line for people. One thread at a time.
std::string reload_parts(const config::Settings& settings, const config::Reloaded& reloaded,
                         const ReloadableParts& parts);

}  // namespace conversed::daemon
