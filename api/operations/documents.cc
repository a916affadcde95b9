#include "api/operations/documents.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "api/http/percent.h"
#include "api/representation/query.h"
#include "store/model/ids.h"

namespace conversed::api {

using model::Errc;
using model::Result;

namespace {

// The request's address again, without its credentials. With a cursor it is that of another page.
std::string address(const Request& request, std::string_view instance, std::string_view parameter,
                    const std::string& cursor) {
  std::string target(instance);
  char separator = '?';
  const auto add = [&](std::string_view name, std::string_view value) {
    target += separator;
    target += percent_encode(name);
    target += '=';
    target += percent_encode(value);
    separator = '&';
  };
  for (const auto& [name, value] : request.query) {
    const bool of_this_page = name == "next" || name == "previous" || name == "skip";
    if (name == "api_key" || (!cursor.empty() && of_this_page)) continue;
    add(name, value);
  }
  if (!cursor.empty()) add(parameter, cursor);
  return target;
}

void add_page_headers(const Document& document, HeaderList& headers) {
  const PageInfo& page = document.list->page;
  headers.emplace_back("X-Total-Count", std::to_string(page.total));
  std::string link;
  if (!page.next_cursor.empty()) {
    headers.emplace_back("X-Next-Cursor", page.next_cursor);
    link = "<" + document.links.next + ">; rel=\"next\"";
  }
  if (!page.previous_cursor.empty()) {
    headers.emplace_back("X-Previous-Cursor", page.previous_cursor);
    if (!link.empty()) link += ", ";
    link += "<" + document.links.previous + ">; rel=\"prev\"";
  }
  if (!link.empty()) headers.emplace_back("Link", std::move(link));
}

// "order:desc,_id:asc"
Result<std::vector<store::SortKey>> parse_sort(std::string_view text) {
  const auto wrong = [] {
    return model::fail(Errc::invalid_argument,
                       "sort must be field:asc or field:desc, several joined by commas");
  };
  std::vector<store::SortKey> sort;
  while (true) {
    const auto end = text.find(',');
    const auto part = text.substr(0, end);
    const auto colon = part.find(':');
    if (colon == 0 || colon == std::string_view::npos) return wrong();
    const auto direction = part.substr(colon + 1);
    if (direction != "asc" && direction != "desc") return wrong();
    sort.push_back({std::string(part.substr(0, colon)),
                    direction == "asc" ? store::Order::ascending : store::Order::descending});
    if (end == std::string_view::npos) return sort;
    text.remove_prefix(end + 1);
  }
}

Result<std::string> parse_cursor(const Request& request, std::string_view name) {
  const auto text = request.parameter(name);
  if (!text) return std::string();
  if (!model::is_id(*text)) {
    return model::fail(Errc::invalid_argument,
                       std::string(name) + " must be a cursor: 24 characters of a-z and 0-9");
  }
  return std::string(*text);
}

}  // namespace

Response document_response(const Request& request, const std::string& instance, int status,
                           Document document) {
  HeaderList headers;
  Links& links = document.links;
  if (links.self.empty()) links.self = address(request, instance, {}, {});
  if (document.list) {
    const PageInfo& page = document.list->page;
    if (!page.next_cursor.empty()) {
      links.next = address(request, instance, "next", page.next_cursor);
    }
    if (!page.previous_cursor.empty()) {
      links.previous = address(request, instance, "previous", page.previous_cursor);
    }
    add_page_headers(document, headers);
  }
  headers.emplace_back("Vary", "Accept");
  const MediaType type = negotiate(request);
  return {.status = status,
          .content_type = std::string(content_type(type)),
          .headers = std::move(headers),
          .body = write(document, type)};
}

std::string base_of(std::string_view instance) {
  const auto place = instance.find("/v2.0/");
  return place == std::string_view::npos ? std::string() : std::string(instance.substr(0, place));
}

Result<store::PageRequest> read_page_request(const Request& request, model::Timestamp now) {
  store::PageRequest page{.now = now};
  auto limit = limit_parameter(request);
  if (!limit) return model::fail(limit.error());
  page.limit = static_cast<std::size_t>(*limit);
  auto skip = number_parameter(request, "skip", 0, std::numeric_limits<std::int64_t>::max(), 0);
  if (!skip) return model::fail(skip.error());
  page.skip = *skip;
  if (const auto text = request.parameter("sort")) {
    auto sort = parse_sort(*text);
    if (!sort) return model::fail(sort.error());
    page.sort = *std::move(sort);
  }
  auto next = parse_cursor(request, "next");
  if (!next) return model::fail(next.error());
  page.next = *std::move(next);
  auto previous = parse_cursor(request, "previous");
  if (!previous) return model::fail(previous.error());
  page.previous = *std::move(previous);
  return page;
}

}  // namespace conversed::api
