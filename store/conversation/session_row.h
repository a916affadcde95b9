#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "store/conversation/sessions.h"
#include "store/sql/sql.h"

// The row of a session with its user's profile. For the .cc files of this folder.
namespace conversed::store {

// Makes a session of its row; none if the row has no session.
struct SessionOfRow {
  const model::SessionKey& key;
  // Receives the profile and the damage; damaged parts are then left empty. Null: damage is thrown.
  Sessions::Loaded* loaded = nullptr;

  std::optional<model::Session> operator()(
      std::int64_t version, std::int64_t epoch, std::int32_t partition, std::int64_t offset,
      model::Timestamp started, model::Timestamp active, const std::string& context,
      const std::string& flow_state, const std::optional<std::string>& execution, std::int64_t seq,
      std::int64_t inbox_size, std::string last_receipt, std::int64_t profile_version,
      const std::string& profile) const;
};

}  // namespace conversed::store
