#include "daemon/log/kept_keys.h"

#include <utility>

namespace conversed::daemon {
namespace {

using model::Result;
using queue::KeptKey;

class KeysInStore final : public queue::KeptKeys {
 public:
  KeysInStore(store::AppendKeys& rows, const model::Clock& clock) : rows_(rows), clock_(clock) {}

  void keep(std::vector<KeptKey> keys, std::function<void(bool)> done) override {
    std::vector<store::HandedKey> rows;
    for (auto& key : keys) {
      rows.push_back({{std::move(key.scope), std::move(key.key), std::move(key.body_hash),
                       std::move(key.id), "", std::move(key.record_key)},
                      key.position,
                      model::from_unix_ms(key.created_ms)});
    }
    rows_.keep(std::move(rows), std::move(done));
  }

  Result<std::optional<KeptKey>> find(const std::string& scope, const std::string& key) override {
    const auto now = clock_.now();
    auto row = rows_.find(scope, key, now);  // if it has not expired
    if (!row) return model::fail(model::Errc::unavailable, row.error().message);
    if (!*row || !(*row)->position) return std::nullopt;
    return KeptKey{.scope = scope,
                   .key = key,
                   .body_hash = std::move((*row)->body_hash),
                   .id = std::move((*row)->event_id),
                   .position = *(*row)->position,
                   .created_ms = model::to_unix_ms(now),
                   .record_key = {}};
  }

 private:
  store::AppendKeys& rows_;
  const model::Clock& clock_;
};

}  // namespace

std::unique_ptr<queue::KeptKeys> keys_in_store(store::AppendKeys& rows, const model::Clock& clock) {
  return std::make_unique<KeysInStore>(rows, clock);
}

}  // namespace conversed::daemon
