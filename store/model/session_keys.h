#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace conversed::model {

// The keys of sessions, as `SessionKey::encode` writes them, from `from` up to, but without, `to`.
struct KeyRange {
  std::string from;
  std::string to;

  [[nodiscard]] bool contains(std::string_view key) const { return key >= from && key < to; }
};

[[nodiscard]] KeyRange keys_of_project(std::string_view project_id);
[[nodiscard]] KeyRange keys_of_user(std::string_view project_id, std::string_view user_id);
// The user's sessions at one Endpoint.
[[nodiscard]] KeyRange keys_of_user(std::string_view project_id, std::string_view user_id,
                                    std::string_view endpoint_id);

// The part of a key that chooses the partition: all up to the second U+001F, or the whole key if it
// has fewer. Of a session's key (SessionKey) it is project and user, so all sessions of a user
// share a partition.
[[nodiscard]] std::string_view routing_part(std::string_view key);

// The partition of a key, 0 to partitions - 1, by murmur2 of its routing part, as Kafka's clients
// compute it. So drivers, and other programs that write to the same topic, agree. `partitions` is
// above 0.
[[nodiscard]] std::int32_t partition_of(std::string_view key, std::int32_t partitions);

}  // namespace conversed::model
