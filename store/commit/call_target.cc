#include "store/commit/call_target.h"

#include <algorithm>
#include <charconv>
#include <cstddef>

#include "store/model/hex.h"
#include "store/model/url.h"
#include "store/text/utf8.h"

namespace conversed::store {

using model::PendingCall;

namespace {

constexpr std::size_t max_target_bytes = 255;  // keeps the index's keys short
// The blank keeps it apart from all hosts.
constexpr std::string_view model_target = "model ";
constexpr std::string_view shown_search = "knowledge ";
constexpr std::string_view shown_script = "a script";
constexpr std::string_view number_mark = "-c";  // in a call's id, before its number

}  // namespace

std::string target_of(const PendingCall& call) {
  if (call.search) return knowledge_target;
  if (call.code) return code_target;
  if (call.http->to_model) return std::string(model_target) + call.http->connection_id;
  return target_of_host(model::authority_of(call.http->url));
}

std::string shown_target(const PendingCall& call) {
  if (call.search) return std::string(shown_search) + call.search->store;
  if (call.code) return std::string(shown_script);
  if (call.http->to_model) return target_of(call);
  return text::well_formed(model::authority_of(call.http->url));
}

std::string words_of_upstream(const std::string& shown) {
  if (shown.starts_with(model_target)) return "a language model";
  if (!shown.starts_with(shown_search)) return shown;
  return "the knowledge store " + shown.substr(shown_search.size());
}

std::string input_of_call(std::string_view call_id) {
  return std::string(call_id.substr(0, call_id.rfind(number_mark)));
}

std::size_t number_of_call(std::string_view call_id) {
  const auto mark = call_id.rfind(number_mark);
  if (mark == std::string_view::npos) return 1;
  const auto digits = call_id.substr(mark + number_mark.size());
  std::size_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return std::max<std::size_t>(number, 1);
}

std::string target_of_host(std::string_view host) {
  std::string target =
      "host " + model::percent_encoded(host, [](char c) { return c > ' ' && c < '\x7f'; });
  if (target.size() > max_target_bytes) target.resize(max_target_bytes);
  return target;
}

std::string connection_of_target(const std::string& target) {
  return target.starts_with(model_target) ? target.substr(model_target.size()) : std::string();
}

}  // namespace conversed::store
