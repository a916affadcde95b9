#include "daemon/outbound/attempt.h"

#include <algorithm>

#include "store/text/utf8.h"

namespace conversed::daemon {

void add_attempt(model::ReceiptText& row, const HttpOutcome& outcome) {
  row.add("us", outcome.took.count());
  row.add("status", outcome.status);
  if (outcome.status == 0) row.add("error", describe(outcome));
}

std::string begin_of_answer(std::string_view body) {
  constexpr std::size_t most_bytes = 200;
  // A character more than shown may be cut in two.
  auto shown = text::well_formed(body.substr(0, most_bytes + 4));
  shown.resize(text::cut(shown, most_bytes).size());
  std::ranges::replace_if(
      shown, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, ' ');
  return shown;
}

}  // namespace conversed::daemon
