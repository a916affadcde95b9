#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/ctl/credentials.h"
#include "store/model/result.h"

namespace conversed::ctl {

// The global options: which daemon to ask, as which user.
struct Options {
  std::string url = "http://127.0.0.1:8080";  // without a trailing slash
  std::string as;  // e-mail of the operator; empty: the one who has signed in by `login`
  std::optional<std::string> password{};  // or a token; nothing: found or asked for when needed
  bool json = false;                      // print JSON for programs
  std::chrono::seconds longest_wait = std::chrono::hours(24);  // for an answer
  // Why the URL of the newest login is not known. Each request fails with it.
  std::optional<model::Error> url_error{};
};

struct Answer {
  int status = 0;
  nlohmann::json body;  // null without a body; a string if the body is no JSON
};

enum class Credentials { none, basic };

// Speaks HTTP to one daemon, one request after the other over a kept connection. One thread at a
// time.
class Client {
 public:
  explicit Client(Options options);

  static constexpr std::chrono::seconds usual_wait{60};

  // Sends a request once and waits for its answer, of any status. `key`: its Idempotency-Key, or
  // empty. `unavailable`: no answer in time.
  [[nodiscard]] model::Result<Answer> request(std::string_view method, const std::string& path,
                                              const nlohmann::json& body, Credentials credentials,
                                              std::chrono::seconds wait = usual_wait,
                                              const std::string& key = {});

  // As `request`, with Basic authentication. The answer is an object, or null without content. A
  // status of 300 and above is an Error with the daemon's `detail`, its traceId and, for a bundle,
  // one line a problem.
  [[nodiscard]] model::Result<nlohmann::json> manage(std::string_view method,
                                                     const std::string& path,
                                                     const nlohmann::json& body = nullptr,
                                                     std::chrono::seconds wait = usual_wait,
                                                     const std::string& key = {});

  // Whether the last request was a change that was sent and got no answer. It may have been made.
  [[nodiscard]] bool is_outcome_unknown() const { return outcome_unknown_; }

  // Requests take the user's password from here on, and not the token of `login`.
  void need_password() { takes_login_ = false; }

  // Whether requests need not ask for a password.
  [[nodiscard]] bool has_credentials() const;

  [[nodiscard]] const Options& options() const { return options_; }

 private:
  model::Result<void> sign_in();

  // The login of `conversectl login`, if it is for this daemon and user.
  model::Result<std::optional<Login>> login() const;

  Options options_;
  bool takes_login_ = true;
  bool uses_login_ = false;
  bool outcome_unknown_ = false;
  std::unique_ptr<void, void (*)(void*)> curl_;
};

// Asks for a password in the terminal, without showing it. `unauthenticated` without a terminal.
[[nodiscard]] model::Result<std::string> prompt_password(const std::string& what);

// Percent-encodes a path segment or a query value (RFC 3986 §2.1).
[[nodiscard]] std::string encode(const std::string& text);

// An answer of 300 and above as an Error that says what to do next. `url`: of the server.
[[nodiscard]] model::Error error_of(const Answer& answer, const std::string& url);

}  // namespace conversed::ctl
