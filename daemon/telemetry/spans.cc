#include "daemon/telemetry/spans.h"

#include <algorithm>
#include <iterator>

#include "store/model/trace.h"

namespace conversed::daemon {
namespace {

std::string_view error_type(const HttpOutcome& outcome) {
  switch (outcome.error) {
    case HttpError::none:
      return "";
    case HttpError::timeout:
      return "timeout";
    case HttpError::egress_refused:
      return "egress_refused";
    case HttpError::too_large:
      return "too_large";
    case HttpError::invalid:
      return "invalid";
    default:
      return "refused";
  }
}

}  // namespace

Span try_span(std::string_view name, std::string trace_id, std::string_view event_id,
              std::string span_id, std::string server, int earlier, const HttpOutcome& outcome,
              model::Timestamp ended) {
  Span span{.trace_id = std::move(trace_id),
            .span_id = std::move(span_id),
            .parent_id = model::span_of_event(event_id),
            .name = std::string(name),
            .kind = Span::Kind::client,
            .begin = ended - outcome.took,
            .took = outcome.took,
            .attributes = {{"server.address", std::move(server)}},
            .error = std::string(error_type(outcome))};
  if (outcome.status != 0) {
    span.attributes.emplace_back("http.response.status_code", outcome.status);
    if (outcome.status >= 400) span.error = std::to_string(outcome.status);
  }
  if (earlier > 0) span.attributes.emplace_back("http.request.resend_count", earlier);
  return span;
}

void Spans::add(Span span) {
  std::vector<Span> one;
  one.push_back(std::move(span));
  add(std::move(one));
}

void Spans::add(std::vector<Span> spans) {
  bool enough = false;
  {
    const std::lock_guard lock(mutex_);
    const auto taken = std::min(spans.size(), limit_ - waiting_.size());
    std::move(spans.begin(), spans.begin() + static_cast<std::ptrdiff_t>(taken),
              std::back_inserter(waiting_));
    dropped_ += spans.size() - taken;
    enough = wanted_ > 0 && waiting_.size() >= wanted_;
  }
  if (enough) arrived_.notify_one();
}

std::vector<Span> Spans::take(std::size_t most, const std::stop_token& stop,
                              std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  wanted_ = most;
  arrived_.wait_until(lock, stop, until, [&] { return waiting_.size() >= most; });
  wanted_ = 0;
  const auto count = static_cast<std::ptrdiff_t>(std::min(most, waiting_.size()));
  std::vector<Span> taken(std::move_iterator(waiting_.begin()),
                          std::move_iterator(waiting_.begin() + count));
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  return taken;
}

}  // namespace conversed::daemon
