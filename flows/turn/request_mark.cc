#include "flows/turn/request_mark.h"

#include <cstdint>
#include <string_view>

#include "store/model/json.h"

namespace conversed::flows {
namespace {

// FNV-1a. The end of each part counts, so that parts can't flow together.
class Mark {
 public:
  void add(std::string_view text) {
    for (const char c : text) take(static_cast<unsigned char>(c));
    take(end_of_part);
  }
  [[nodiscard]] std::string text() const {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (int shift = 60; shift >= 0; shift -= 4) text += digits[(hash_ >> shift) & 15];
    return text;
  }

 private:
  static constexpr std::uint64_t end_of_part = 0x100;  // no byte

  void take(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3; }

  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace

std::string request_mark(const model::PendingCall& call) {
  Mark mark;
  if (call.http) {
    for (const auto* part : {&call.http->method, &call.http->url, &call.http->body}) {
      mark.add(*part);
    }
    return mark.text();
  }
  if (call.code) {
    mark.add("code");
    mark.add(call.code->script);
    mark.add(model::json_text(call.code->values));
    return mark.text();
  }
  if (!call.search) return {};
  mark.add(call.search->store);
  for (const auto& source : call.search->sources) mark.add(source);
  mark.add("");
  mark.add(call.search->text);
  mark.add(std::to_string(call.search->limit));
  return mark.text();
}

}  // namespace conversed::flows
