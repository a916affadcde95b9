// GET /v2.0/knowledgestores/{knowledgeStoreId}/sources/{sourceId}/chunks: the chunks of a Knowledge
// Source, page by page.
// GET /v2.0/lexicons/{lexiconId}/entries: the entries of a Lexicon, page by page.
// GET /v2.0/organisations/chunkcount: how many Knowledge Chunks the organisation has in all of its
// projects.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/live/digest.h"
#include "api/openapi/description.h"
#include "api/openapi/shape.h"
#include "api/operations/documents.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using store::KnowledgeChunk;
using store::LexiconEntry;
using namespace openapi;

Value data_of(const KnowledgeChunk& chunk) {
  Value data = Value::parse(chunk.data, nullptr, false);
  return data.is_discarded() ? Value() : data;  // discarded: damaged in the store
}

const Shape<KnowledgeChunk>& chunk_shape() {
  static const Shape<KnowledgeChunk> shape(
      "KnowledgeChunk", {{"_id", id(), &KnowledgeChunk::id},
                         {"order", integer(0), &KnowledgeChunk::order},
                         {"text", text(), &KnowledgeChunk::text},
                         {"disabled", boolean(), &KnowledgeChunk::disabled},
                         {"data", anything(), data_of},
                         {"storeReference", id(), &KnowledgeChunk::store_id},
                         {"sourceReference", id(), &KnowledgeChunk::source_id},
                         {"createdAt", unix_time(), &KnowledgeChunk::created_at}});
  return shape;
}

constexpr ListForm chunk_list{.root = "knowledgeChunks", .item = "item"};

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
  return page_response(call, chunk_list, *std::move(page), chunk_shape());
}

Description describe_knowledge_chunks() {
  auto parameters = page_parameters(store::Assets::chunk_sort_fields());
  parameters.push_back(query_parameter(
      "filter", "A part of the text; ignores case. A cursor includes its filter.", form_text()));
  return {.summary = "Get Knowledge Chunks",
          .parameters = std::move(parameters),
          .answers = {list_answer("getKnowledgeChunks_2_0", "A page of chunks.", chunk_list,
                                  chunk_shape().schema())}};
}

constexpr std::string_view missing_lexicon = "there is no such Lexicon";

// A keyphrase has no row. Its id is derived from its entry and its text, so it is stable.
std::string keyphrase_id(const std::string& entry_id, const std::string& keyphrase) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  constexpr std::size_t length = 24;
  const Digest hash = digest({entry_id, keyphrase});
  std::string id;
  for (std::size_t i = 0; i < length; ++i) id += letters[hash[i] % letters.size()];
  return id;
}

Value keyphrases_of(const LexiconEntry& entry) {
  Value keyphrases = Value::array();
  const auto add = [&](const std::string& text, bool is_main) {
    keyphrases.push_back(
        {{"_id", keyphrase_id(entry.id, text)}, {"value", text}, {"isMainKeyphrase", is_main}});
  };
  add(entry.main_keyphrase, true);
  for (const auto& each : entry.keyphrases) add(each, false);
  return {{"keyphrases", std::move(keyphrases)}};
}

const Shape<LexiconEntry>& entry_shape() {
  const auto keyphrase = object({{"_id", id()}, {"value", text()}, {"isMainKeyphrase", boolean()}});
  static const Shape<LexiconEntry> shape(
      "LexiconEntry", {{"_id", id(), &LexiconEntry::id},
                       {"mainKeyphrase", text(), &LexiconEntry::main_keyphrase},
                       {"data", described("JSON, as text.", text()), &LexiconEntry::data},
                       {"keyphrases", object({{"keyphrases", list_of(keyphrase)}}), keyphrases_of},
                       {"slotReferences", list_of(id()), &LexiconEntry::slot_ids}});
  return shape;
}

constexpr ListForm entry_list{
    .json = ListForm::Json::bare_array, .root = "lexiconEntries", .item = "lexiconEntry"};

Result<Response> lexicon_entries(const Call& call, ProjectServices& services) {
  auto id = id_of(call, "lexiconId");
  if (!id) return model::fail(id.error());
  auto request = read_page_request(call.request, services.store.timer_now());
  if (!request) return model::fail(request.error());
  const auto project_id = call.request.parameter("projectId");
  if (project_id) {
    if (auto checked = checked_id("projectId", *project_id); !checked) {
      return model::fail(checked.error());
    }
  }
  auto& assets = services.store.assets();
  auto project = open_owner(services.store, *call.principal, assets.project_of_lexicon(*id),
                            Role::member, missing_lexicon);
  if (!project) return model::fail(project.error());
  if (project_id && *project_id != project->id) {
    return model::fail(Errc::not_found, std::string(missing_lexicon));
  }
  auto page = assets.lexicon_entries(*id, *request);
  if (!page) return model::fail(store_error(page.error()));
  return page_response(call, entry_list, *std::move(page), entry_shape());
}

Description describe_lexicon_entries() {
  auto parameters = page_parameters(store::Assets::entry_sort_fields());
  parameters.push_back(query_parameter("projectId", "The Lexicon's project.", id()));
  return {.summary = "Get Lexicon entries",
          .parameters = std::move(parameters),
          .answers = {list_answer("getLexiconEntries_2_0", "A page of entries.", entry_list,
                                  entry_shape().schema())}};
}

model::Result<Response> chunk_count(const Call& call, ProjectServices& services) {
  if (!call.principal->is_member()) {
    return model::fail(model::Errc::permission_denied,
                       "membership in a project of the organisation is needed");
  }
  return from_store(services.store.assets().count_chunks(call.principal->organisation_id))
      .map([](std::int64_t count) {
        return ok({{"chunkCount", count}});
      });
}

Description describe_chunk_count() {
  const auto count = object({{"chunkCount", integer(0)}});
  return {.summary = "Get the number of Knowledge Chunks",
          .details = "Counts the chunks of all projects of the organisation.",
          .answers = {json_answer("The number.", named("ChunkCount", count))},
          .errors = specified_errors()};
}

}  // namespace

Operations knowledge_operations() {
  static constexpr Operation rows[] = {
      for_clients("getKnowledgeChunks_2_0", Method::get,
                  "/v2.0/knowledgestores/{knowledgeStoreId}/sources/{sourceId}/chunks",
                  Role::member, knowledge_chunks, describe_knowledge_chunks),
      for_clients("getLexiconEntries_2_0", Method::get, "/v2.0/lexicons/{lexiconId}/entries",
                  Role::member, lexicon_entries, describe_lexicon_entries),
      for_clients("getChunkCount_2_0", Method::get, "/v2.0/organisations/chunkcount", Role::member,
                  chunk_count, describe_chunk_count),
  };
  return rows;
}

}  // namespace conversed::api
