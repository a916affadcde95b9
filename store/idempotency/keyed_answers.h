#pragma once

#include <optional>
#include <string>

#include "store/commit/committer.h"
#include "store/model/result.h"

namespace conversed::store {

// What makes a request that changes the store alone have its effect once: the client's
// `Idempotency-Key`. (Those that append to the log have queue::KeyedAppend.)
struct AnswerKey {
  std::string scope;  // organisation, route and object; keys of two scopes never meet
  std::string key;    // as the client sent it
  std::string body_hash;
};

// A 2xx answer, to be given again.
struct KeptAnswer {
  int status = 200;
  std::string content_type;
  std::string body;
};

struct KeyedAnswer {
  AnswerKey key;
  KeptAnswer answer;
  std::string session_key{};  // of the session that it is about; empty: about none
};

inline constexpr std::chrono::hours keyed_answer_lifetime{24};

// The answer that the key stands for, if it was used. `conflict` if that was with another body.
// Both belong into the transaction of the change, so that nothing comes between.
[[nodiscard]] model::Result<std::optional<KeptAnswer>> find_keyed_answer(Writer& writer,
                                                                         const AnswerKey& key);
void keep_keyed_answer(Writer& writer, const KeyedAnswer& keyed);

}  // namespace conversed::store
