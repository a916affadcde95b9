#pragma once

#include <optional>
#include <string>

#include "store/commit/committer.h"
#include "store/model/result.h"

namespace conversed::store {

// The client's `Idempotency-Key` of a request that changes only the store. Requests that append to
// the log use queue::KeyedAppend.
struct AnswerKey {
  std::string scope;  // organisation, route and object; keys of two scopes never meet
  std::string key;    // as the client sent it
  std::string body_hash;
};

// A 2xx answer. A request that repeats the key gets it again.
struct KeptAnswer {
  int status = 200;
  std::string content_type;
  std::string body;
};

struct KeyedAnswer {
  AnswerKey key;
  KeptAnswer answer;
  std::string session_key{};  // of the request's session; empty: it has none
};

inline constexpr std::chrono::hours keyed_answer_lifetime{24};

// Returns the kept answer if the key was used. `conflict` if it was used with another body. Call
// both functions in the transaction of the change, so that no other request comes between.
[[nodiscard]] model::Result<std::optional<KeptAnswer>> find_keyed_answer(Writer& writer,
                                                                         const AnswerKey& key);
void keep_keyed_answer(Writer& writer, const KeyedAnswer& keyed);

}  // namespace conversed::store
