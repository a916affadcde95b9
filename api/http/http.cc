#include "api/http/http.h"

#include <algorithm>
#include <array>

#include "api/http/error_reply.h"

namespace conversed::api {
namespace {

std::optional<std::string_view> first(const HeaderList& list, std::string_view name) {
  const auto at = std::ranges::find(list, name, &HeaderList::value_type::first);
  if (at == list.end()) return std::nullopt;
  return at->second;
}

}  // namespace

std::string_view method_name(Method method) {
  static constexpr std::array<std::string_view, 9> names{
      "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", ""};
  return names.at(static_cast<std::size_t>(method));
}

std::optional<std::string_view> Request::header(std::string_view name) const {
  return first(headers, name);
}

std::size_t Request::count_headers(std::string_view name) const {
  return static_cast<std::size_t>(
      std::ranges::count(headers, name, &HeaderList::value_type::first));
}

std::optional<std::string_view> Request::parameter(std::string_view name) const {
  return first(query, name);
}

Reply::~Reply() {
  if (!sink_) return;
  if (told_) told_(500);
  sink_->abandoned(sequence_);
}

void Reply::on_answer(std::function<void(int status)> told) {
  if (!told_) {
    told_ = std::move(told);
    return;
  }
  told_ = [first = std::move(told_), second = std::move(told)](int status) {
    first(status);
    second(status);
  };
}

void Reply::send(Response response) {
  if (!sink_) return;
  const auto sink = std::move(sink_);
  if (told_) told_(response.status);
  response.route = route_;
  sink->answer(sequence_, std::move(response));
}

void Reply::text(int status, std::string body) {
  send({.status = status, .content_type = "text/plain; charset=utf-8", .body = std::move(body)});
}

void Reply::fail(const model::Error& error) {
  if (!sink_) return;
  const bool may_be_reduced =
      error.code == model::Errc::invalid_argument || error.code == model::Errc::not_found;
  const bool is_problem = error_shape_ == ErrorShape::reduced && !may_be_reduced;
  send(error_response(error, sink_->context(), sink_->now(),
                      is_problem ? ErrorShape::problem : error_shape_));
}

}  // namespace conversed::api
