#include "daemon/turns/turn_batch.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "api/live/digest.h"
#include "daemon/turns/turn_batch_builder.h"
#include "store/model/hex.h"
#include "store/text/utf8.h"

namespace conversed::daemon {

using model::fail;
using model::Result;
using model::SessionKey;

namespace {

constexpr std::size_t longest_id = 512;  // of users and sessions, in bytes

bool is_id(const std::string& text) {
  return text.size() <= longest_id && text::is_utf8(text);
}

}  // namespace

SessionKey session_of(const std::string& lane_key) {
  auto key = SessionKey::decode(lane_key);
  if (key && !key->endpoint_id.empty() && is_id(key->project_id) && is_id(key->endpoint_id) &&
      is_id(key->user_id) && is_id(key->session_id)) {
    return std::move(*key);
  }
  std::string shown(text::cut(text::well_formed(lane_key), longest_id));
  std::ranges::replace_if(
      shown, [](char c) { return c >= 0 && c < ' '; }, '_');
  return {"", "", std::move(shown), model::hex(api::digest({lane_key}))};
}

Result<TurnBatch> build_turn_batch(const TurnBatchContext& context, const TurnBatchInput& input) {
  EarlierBuilds earlier;
  for (;;) {
    auto built = TurnBatchBuilder(context, input, earlier).build();
    if (!built) return fail(built.error());
    if (auto* batch = std::get_if<TurnBatch>(&*built)) return std::move(*batch);
    // A failed Turn has taken the batch's session with it. Turns are pure: the batch is built again
    // from the store, and the event becomes a dead letter there.
    auto& failed = std::get<FailedTurn>(*built);
    earlier.failed.emplace(std::move(failed.event_id), std::move(failed.reason));
    earlier.spent = failed.spent;
  }
}

}  // namespace conversed::daemon
