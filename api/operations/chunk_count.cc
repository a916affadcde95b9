// GET /v2.0/organisations/chunkcount: how many Knowledge Chunks the organisation has in all of its
// projects.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/documents.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {
namespace {

model::Result<Response> chunk_count(const Call& call, ProjectServices& services) {
  if (!call.principal->is_member()) {
    return model::fail(model::Errc::permission_denied,
                       "membership in a project of the organisation is needed");
  }
  auto count = services.store.assets().count_chunks(call.principal->organisation_id);
  if (!count) return model::fail(store_error(count.error()));
  return ok({{"chunkCount", *count}});
}

openapi::Description describe_chunk_count() {
  using namespace openapi;
  const auto count = object({{"chunkCount", integer(0)}});
  return {.summary = "Get the number of Knowledge Chunks",
          .details = "Of all projects of the organisation.",
          .answers = {{.description = "The number.",
                       .content = json_content(named("ChunkCount", count))}},
          .errors = specified_errors()};
}

}  // namespace

constinit const Operation chunk_count_operation =
    for_clients("getChunkCount_2_0", Method::get, "/v2.0/organisations/chunkcount", Role::member,
                chunk_count, describe_chunk_count);

}  // namespace conversed::api
