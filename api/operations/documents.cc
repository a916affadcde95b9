#include "api/operations/documents.h"

#include <limits>
#include <utility>

#include "api/http/http_syntax.h"
#include "api/representation/input.h"
#include "store/model/hex.h"
#include "store/model/ids.h"

namespace conversed::api {

using model::Errc;
using model::Result;

namespace {

// The request's address without its credentials. With a cursor, the address of the other page.
std::string address(const Request& request, std::string_view instance,
                    std::string_view parameter = {}, const std::string& cursor = {}) {
  HeaderList query = request.query;
  std::erase_if(query, [&](const auto& each) {
    const auto& name = each.first;
    const bool of_this_page = name == "next" || name == "previous" || name == "skip";
    return name == "api_key" || (!cursor.empty() && of_this_page);
  });
  if (!cursor.empty()) query.emplace_back(parameter, cursor);
  std::string target(instance);
  for (const auto& [name, value] : query) {
    target += target.size() == instance.size() ? '?' : '&';
    target.append(model::percent_encoded(name, is_unreserved))
        .append("=")
        .append(model::percent_encoded(value, is_unreserved));
  }
  return target;
}

// Adds the links to the other pages and the paging headers.
void add_pages(const Request& request, std::string_view instance, Document& document,
               HeaderList& headers) {
  const ListPage& page = *document.list;
  headers.emplace_back("X-Total-Count", std::to_string(page.total));
  std::string link;
  const auto add = [&](const char* header, const char* parameter, const char* relation,
                       const std::string& cursor, std::string& target) {
    if (cursor.empty()) return;
    target = address(request, instance, parameter, cursor);
    headers.emplace_back(header, cursor);
    link += (link.empty() ? "<" : ", <") + target + ">; rel=\"" + relation + '"';
  };
  add("X-Next-Cursor", "next", "next", page.next_cursor, document.links.next);
  add("X-Previous-Cursor", "previous", "prev", page.previous_cursor, document.links.previous);
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

}  // namespace

Response document_response(const Request& request, const std::string& instance, int status,
                           Document document) {
  HeaderList headers;
  if (document.links.self.empty()) document.links.self = address(request, instance);
  if (document.list) add_pages(request, instance, document, headers);
  headers.emplace_back("Vary", "Accept");
  const MediaType type = negotiate(request);
  return {.status = status,
          .content_type = std::string(content_type(type)),
          .headers = std::move(headers),
          .body = write(document, type)};
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
  for (const auto& [name, place] :
       {std::pair{"next", &page.next}, std::pair{"previous", &page.previous}}) {
    const auto cursor = request.parameter(name);
    if (!cursor) continue;
    if (!model::is_id(*cursor)) {
      return model::fail(Errc::invalid_argument,
                         std::string(name) + " must be a cursor: 24 characters of a-z and 0-9");
    }
    *place = *cursor;
  }
  return page;
}

}  // namespace conversed::api
