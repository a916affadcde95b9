#include "daemon/ctl/client.h"

#include <curl/curl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>

#include "daemon/ctl/output/fields.h"
#include "store/text/ascii.h"

namespace conversed::ctl {
namespace {

using model::Errc;
using model::fail;
using model::Result;

std::size_t collect(char* data, std::size_t size, std::size_t count, void* out) {
  static_cast<std::string*>(out)->append(data, size * count);
  return size * count;
}

// The daemon's description of an error. `url`: the server's.
std::string detail_of(const Answer& answer, const std::string& url) {
  try {
    const Fields error(answer.body);
    std::string detail = error.text("detail");
    for (const char* list : {"problems", "warnings"}) {
      if (!error.has("details") || !error.object("details").has(list)) continue;
      const std::string kind = list == std::string_view("warnings") ? "warning" : "";
      for (const Fields& problem : error.object("details").objects(list)) {
        detail += "\n  " + problem_line(problem, kind);
      }
    }
    if (error.has("details") && error.object("details").has("usages")) {
      for (const Fields& usage : error.object("details").objects("usages")) {
        detail +=
            "\n  " + usage.text("part") + " " + usage.text("name") + ": " + usage.text("text");
      }
    }
    const auto trace = error.text_if_any("traceId");
    if (!trace.empty() && answer.status >= 500) detail += " (traceId " + trace + ")";
    return detail;
  } catch (const BadAnswer&) {
    return "the server at " + url + " did not answer like conversed (status " +
           std::to_string(answer.status) + "): is --url right?";
  }
}

}  // namespace

Client::Client(Options options) : options_(std::move(options)), curl_(nullptr, curl_easy_cleanup) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  curl_.reset(curl_easy_init());
}

Result<std::optional<Login>> Client::login() const {
  auto login = stored_login(options_.url);
  const bool is_other = login && *login && !options_.as.empty() &&
                        !text::equals_ignoring_case(options_.as, (*login)->email);
  return is_other ? std::nullopt : login;
}

Result<void> Client::sign_in() {
  if (options_.password) return {};
  const char* password = std::getenv("CONVERSECTL_PASSWORD");
  if (password != nullptr && !options_.as.empty()) {
    options_.password = password;
    return {};
  }
  auto kept = login();
  if (!kept) return fail(kept.error());
  if (*kept) options_.as = (*kept)->email;
  if (*kept && takes_login_) {
    options_.password = (*kept)->token;
    uses_login_ = true;
    return {};
  }
  if (options_.as.empty()) {
    return fail(Errc::unauthenticated,
                "no user is named: sign in by `conversectl login`, or give --as EMAIL (or set "
                "CONVERSECTL_AS) with CONVERSECTL_PASSWORD set");
  }
  if (password != nullptr) {  // of the user whom the login names
    options_.password = password;
    return {};
  }
  auto typed = prompt_password("Password of " + options_.as);
  if (!typed) {
    const std::string why =
        *kept ? ": this command needs the password, not the token of the login" : "";
    return fail(typed.error().code, typed.error().message + ", or set CONVERSECTL_PASSWORD" + why);
  }
  options_.password = std::move(*typed);
  return {};
}

bool Client::has_credentials() const {
  if (options_.password) return true;
  if (!options_.as.empty() && std::getenv("CONVERSECTL_PASSWORD") != nullptr) return true;
  const auto kept = login();
  return kept && *kept;
}

Result<Answer> Client::request(std::string_view method, const std::string& path,
                               const nlohmann::json& body, Credentials credentials,
                               std::chrono::seconds wait, const std::string& key) {
  outcome_unknown_ = false;
  if (options_.url_error) return fail(*options_.url_error);
  if (credentials == Credentials::basic) {
    if (auto ready = sign_in(); !ready) return fail(ready.error());
  }
  CURL* curl = curl_.get();
  if (curl == nullptr) return fail(Errc::internal, "libcurl could not be set up");
  curl_easy_reset(curl);
  const std::string address = options_.url + path;
  const std::string method_name(method);
  std::string payload;
  try {
    if (!body.is_null()) payload = body.dump();
  } catch (const nlohmann::json::type_error&) {
    return fail(Errc::invalid_argument,
                "an argument, or the file to send, is not UTF-8: convert it, such as by "
                "`iconv -f latin1 -t utf-8`");
  }
  std::string received;
  curl_easy_setopt(curl, CURLOPT_URL, address.c_str());
  curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method_name.c_str());
  curl_easy_setopt(curl, CURLOPT_TIMEOUT,
                   static_cast<long>(std::min(wait, options_.longest_wait).count()));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &received);
  curl_slist* headers = curl_slist_append(nullptr, "Content-Type: application/json");
  headers = curl_slist_append(headers, "Expect:");
  if (!key.empty()) headers = curl_slist_append(headers, ("Idempotency-Key: " + key).c_str());
  // libcurl repeats a request if a kept connection breaks before the answer. A change that has been
  // made must not be made again.
  const bool is_change = method != "GET";
  curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, is_change ? 1L : 0L);
  if (!body.is_null()) {
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, payload.c_str());
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, static_cast<long>(payload.size()));
  }
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  if (credentials == Credentials::basic) {
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
    curl_easy_setopt(curl, CURLOPT_USERNAME, options_.as.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, options_.password->c_str());
  }
  const CURLcode code = curl_easy_perform(curl);
  curl_slist_free_all(headers);
  if (code != CURLE_OK) {
    long sent = 0;
    curl_easy_getinfo(curl, CURLINFO_REQUEST_SIZE, &sent);
    outcome_unknown_ = is_change && sent > 0;
    const char* const hint = outcome_unknown_
                                 ? "): the outcome is unknown, since the request was sent"
                                 : "): is the daemon running, and is --url right?";
    return fail(Errc::unavailable,
                "no answer from " + options_.url + " (" + curl_easy_strerror(code) + hint);
  }
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  outcome_unknown_ = is_change && (status == 502 || status == 504);
  Answer answer{static_cast<int>(status), nullptr};
  if (!received.empty()) {
    answer.body = nlohmann::json::parse(received, nullptr, false);
    if (answer.body.is_discarded()) answer.body = std::move(received);
  }
  return answer;
}

Result<nlohmann::json> Client::manage(std::string_view method, const std::string& path,
                                      const nlohmann::json& body, std::chrono::seconds wait,
                                      const std::string& key) {
  auto answer = request(method, path, body, Credentials::basic, wait, key);
  if (!answer) return fail(answer.error());
  if (answer->status == 401 && uses_login_) {
    return fail(Errc::unauthenticated, "your login at " + options_.url +
                                           " has ended: sign in again by `conversectl login`");
  }
  if (answer->status >= 300) return fail(error_of(*answer, options_.url));
  if (!answer->body.is_null() && !answer->body.is_object()) {
    return fail(Errc::internal,
                "the answer of " + options_.url + " does not come from conversed: is --url right?");
  }
  return std::move(answer->body);
}

Result<std::string> prompt_password(const std::string& what) {
  termios shown{};
  if (isatty(STDIN_FILENO) == 0 || tcgetattr(STDIN_FILENO, &shown) != 0) {
    return fail(Errc::unauthenticated, "no password: run in a terminal to be asked for it");
  }
  std::cerr << what << ": " << std::flush;
  termios hidden = shown;
  hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  std::string password;
  std::getline(std::cin, password);
  tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
  std::cerr << "\n";
  return password;
}

std::string encode(const std::string& text) {
  const std::unique_ptr<char, void (*)(void*)> encoded(
      curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size())), curl_free);
  return encoded ? encoded.get() : "";
}

model::Error error_of(const Answer& answer, const std::string& url) {
  std::string message = detail_of(answer, url);
  if (answer.status < 400) {
    message = url + " answers with a redirect (status " + std::to_string(answer.status) +
              "): is --url right?";
  }
  const bool is_of_daemon = answer.body.is_object();
  if (answer.status == 401 && is_of_daemon) message += ": check --as and CONVERSECTL_PASSWORD";
  constexpr std::string_view no_project = "the query parameter projectId is required";
  if (message.starts_with(no_project)) {
    message.replace(0, no_project.size(), "name the project by --project");
  }
  return model::Error{Errc::invalid_argument, std::move(message)};
}

}  // namespace conversed::ctl
