// GET /{URLToken}/outputs: a session's outputs after a sequence number, for clients without a
// webhook. With `wait` it is a long poll: it answers when there is an output, after 30 s at most.
#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/live/answer.h"
#include "api/live/pending_replies.h"
#include "api/openapi/description.h"
#include "api/operations/accept.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "api/representation/input.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Result;
using nlohmann::json;
using namespace openapi;

constexpr std::int64_t max_after = std::numeric_limits<std::int64_t>::max() - 1;
constexpr std::size_t max_items = 100;  // the next answer has further ones

struct Query {
  model::SessionKey key;
  std::int64_t after = 0;
  std::chrono::seconds wait{0};
};

Result<Query> read_query(const Call& call, MessageServices& services) {
  auto token = normal_url_token(call.parameters["URLToken"]);
  if (!token) return model::fail(token.error());
  auto endpoint = find_endpoint(services.assets, *token);
  if (!endpoint) return model::fail(endpoint.error());
  Query query;
  query.key.project_id = (*endpoint)->project_id;
  query.key.endpoint_id = (*endpoint)->id;
  for (const auto& [name, place] :
       {std::pair{"userId", &query.key.user_id}, std::pair{"sessionId", &query.key.session_id}}) {
    auto value = required_parameter(call.request, name);
    if (!value) return model::fail(value.error());
    if (auto checked = check_name(name, *value); !checked) return model::fail(checked.error());
    *place = std::move(*value);
  }
  auto after = number_parameter(call.request, "after", 0, max_after, 0);
  if (!after) return model::fail(after.error());
  query.after = *after;
  auto wait = wait_parameter(call.request);
  if (!wait) return model::fail(wait.error());
  query.wait = std::chrono::seconds(*wait);
  return query;
}

struct Page {
  std::vector<model::Output> outputs;
  std::int64_t last = 0;
  // The client has higher numbers than the session, because the session began again after an
  // erasure or its expiry.
  bool restarted = false;
};

Result<Page> look(MessageServices& services, const Query& query) {
  auto& outbox = services.store.of(query.key).outbox();
  auto outputs = outbox.outputs(query.key, query.after, max_items);
  if (!outputs) return model::fail(store_error(outputs.error()));
  if (!outputs->empty()) {
    const std::int64_t last = outputs->back().seq;
    return Page{std::move(*outputs), last, false};
  }
  if (query.after == 0) return Page{};
  const auto last = outbox.last_seq(query.key);
  if (!last) return model::fail(store_error(last.error()));
  return Page{{}, std::min(*last, query.after), *last < query.after};
}

void send_page(Reply& reply, const Result<Page>& page) {
  if (!page) return reply.fail(page.error());
  json items = json::array();
  for (const model::Output& output : page->outputs) items.push_back(output_item(output));
  json body{{"items", std::move(items)}, {"last", page->last}};
  if (page->restarted) body["restarted"] = true;
  reply.send(ok(body));
}

// A waiting poll. The watch's callback answers, or, if the outputs exist already, the caller that
// cancels the watch.
struct Poll {
  Query query;
  std::chrono::steady_clock::time_point deadline;
  Reply reply;
};

void wait_for_outputs(const std::shared_ptr<Poll>& poll, MessageServices& services) {
  const Query& query = poll->query;
  // Watches before it looks, so an output in between is noticed.
  const auto ticket = services.watch.watch(
      outputs_name(query.key), poll->deadline, [poll, &services](WatchEnd why) {
        switch (why) {
          case WatchEnd::notified:
            // The client may have this output already: a notification comes a moment after its
            // output can be read.
            return wait_for_outputs(poll, services);
          case WatchEnd::deadline:
            return send_page(poll->reply, look(services, poll->query));
          case WatchEnd::stopped:
            // The wait began without outputs. The client asks the next daemon.
            return send_page(poll->reply, Page{{}, poll->query.after, false});
        }
      });
  const auto found = look(services, query);
  if (found && found->outputs.empty() && !found->restarted) return;
  if (services.watch.cancel(ticket)) send_page(poll->reply, found);
}

void outputs(Call call, MessageServices& services, Reply reply) {
  auto query = read_query(call, services);
  if (!query) return reply.fail(query.error());
  if (query->wait.count() == 0) return send_page(reply, look(services, *query));

  const auto deadline = services.options.steady_now() + query->wait;
  wait_for_outputs(std::make_shared<Poll>(Poll{std::move(*query), deadline, std::move(reply)}),
                   services);
}

Description describe_outputs() {
  const auto page =
      object({{"items", list_of(output_schema())},
              {"last", integer(0)},
              {"restarted", described("Present only if true.", boolean()), Need::optional}});
  return {.summary = "Get a session's outputs",
          .details = "For clients without a webhook. At most " + std::to_string(max_items) +
                     " items in an answer. Give `last` as the next `after`. An `after` "
                     "beyond the session's last number is answered at once without items and with "
                     "`restarted: true`: the session has begun again. Ask without `after`.",
          .parameters = {query_parameter("userId", "The user of the conversation.",
                                         conversation_name(), Need::required),
                         query_parameter("sessionId", "The session of the conversation.",
                                         conversation_name(), Need::required),
                         query_parameter("after", "Only outputs after this sequence number.",
                                         with_default(0, integer(0, max_after))),
                         wait_until("outputs")},
          .answers = {json_answer("The outputs, maybe none.", named("Outputs", page))}};
}

}  // namespace

Operations outputs_operations() {
  static constexpr Operation rows[] = {
      for_all("outputs", Method::get, "/{URLToken}/outputs", outputs, describe_outputs),
  };
  return rows;
}

}  // namespace conversed::api
