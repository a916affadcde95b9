// GET /v2.0/knowledgestores/{knowledgeStoreId}/sources/{sourceId}/chunks: the chunks of a Knowledge
// Source, page by page.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/lists.h"
#include "api/operations/documents.h"
#include "api/operations/management.h"
#include "api/operations/objects.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Result;

Value chunk_item(const store::KnowledgeChunk& chunk) {
  Value data = Value::parse(chunk.data, nullptr, false);
  if (data.is_discarded()) data = nullptr;  // what is stored is damaged; the rest is of use
  return {{"_id", chunk.id},
          {"order", chunk.order},
          {"text", chunk.text},
          {"disabled", chunk.disabled},
          {"data", std::move(data)},
          {"storeReference", chunk.store_id},
          {"sourceReference", chunk.source_id},
          {"createdAt", unix_seconds(chunk.created_at)}};
}

Result<Response> knowledge_chunks(const Call& call, ProjectServices& services) {
  auto store_id = id_of(call, "knowledgeStoreId");
  if (!store_id) return model::fail(store_id.error());
  auto source_id = id_of(call, "sourceId");
  if (!source_id) return model::fail(source_id.error());
  auto request = read_page_request(call.request, services.store.timer_now());
  if (!request) return model::fail(request.error());
  request->filter = call.request.parameter("filter").value_or("");
  auto& assets = services.store.assets();
  auto project =
      open_owner(services.store, *call.principal, assets.project_of_source(*store_id, *source_id),
                 Role::member, "there is no such Knowledge Source");
  if (!project) return model::fail(project.error());
  auto page = assets.chunks(*source_id, *request);
  if (!page) return model::fail(store_error(page.error()));
  return document_response(
      call.request, call.exchange.instance, status::ok,
      page_document(*std::move(page), "knowledgeChunks",
                    ListShape{.json = ListShape::Json::object,
                              .item = "item",
                              .columns = {"_id", "order", "text", "disabled", "data",
                                          "storeReference", "sourceReference", "createdAt"}},
                    chunk_item));
}

openapi::Schema chunk_schema() {
  using namespace openapi;
  return named("KnowledgeChunk", object({{"_id", id()},
                                         {"order", integer(0)},
                                         {"text", text()},
                                         {"disabled", boolean()},
                                         {"data", anything()},
                                         {"storeReference", id()},
                                         {"sourceReference", id()},
                                         {"createdAt", unix_time()}}));
}

openapi::Description describe_knowledge_chunks() {
  using namespace openapi;
  auto parameters = page_parameters(store::Assets::chunk_sort_fields());
  parameters.push_back(path_parameter("knowledgeStoreId", "The Knowledge Store.", id()));
  parameters.push_back(path_parameter("sourceId", "The Knowledge Source.", id()));
  parameters.push_back(query_parameter(
      "filter", "What the text has to hold, without regard to case. A cursor brings its own.",
      form_text()));
  return {.summary = "Get Knowledge Chunks",
          .parameters = std::move(parameters),
          .answers = {list_answer({.operation = knowledge_chunks_operation.id,
                                   .description = "A page of them.",
                                   .json = ListShape::Json::object,
                                   .root = "knowledgeChunks",
                                   .item_element = "item",
                                   .item = chunk_schema()})},
          .errors = {404}};
}

}  // namespace

constinit const Operation knowledge_chunks_operation =
    for_clients("getKnowledgeChunks_2_0", Method::get,
                "/v2.0/knowledgestores/{knowledgeStoreId}/sources/{sourceId}/chunks", Role::member,
                knowledge_chunks, describe_knowledge_chunks);

}  // namespace conversed::api
