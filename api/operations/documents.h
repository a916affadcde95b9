#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/http/http.h"
#include "api/operation.h"
#include "api/representation/document.h"
#include "api/services.h"
#include "store/model/result.h"
#include "store/paging/page.h"

// What operations that answer with documents have in common: representations, pages of lists, and
// work that may block.
namespace conversed::api {

// Answers with the representation that the request asks for. A list also says where it goes on, in
// the headers `Link`, `X-Next-Cursor`, `X-Previous-Cursor` and `X-Total-Count`. Without links of
// its own the document gets those of the request.
void send_document(Reply& reply, const Request& request, int status, Document document,
                   HeaderList headers = {});

// What comes before "/v2.0/" in the path that the client used: "/new" or nothing.
[[nodiscard]] std::string base_of(std::string_view instance);

// `limit`, `skip`, `sort`, `next` and `previous` of a list, but for names of fields, which its
// store knows. Errors: `invalid_argument`.
[[nodiscard]] model::Result<store::PageRequest> read_page_request(const Request& request,
                                                                  model::Timestamp now);

[[nodiscard]] PageInfo page_info(std::int64_t total, std::string next, std::string previous);

// Runs `work` on the pool, where it may block; 503 when too much waits there already, or while the
// store fails.
using Work = void (*)(const Call& call, Services& services, Reply& reply);
void on_pool(Call call, Services& services, Reply reply, Work work);

}  // namespace conversed::api
