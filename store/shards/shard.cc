#include "store/shards/shard.h"

#include <chrono>
#include <utility>

#include "store/sql/read.h"

namespace conversed::store {

Shard::Shard(ShardPlace place, std::unique_ptr<Database> database,
             std::shared_ptr<PostgresPulse> pulse, const CommitterSettings& committer,
             const model::Clock& clock)
    : place_(std::move(place)),
      database_(std::move(database)),
      timer_clock_(committer.timer_clock == nullptr ? clock : *committer.timer_clock),
      pulse_(std::move(pulse)),
      committer_(*database_, clock, committer) {}

Shard::~Shard() {
  stop();
}

void Shard::stop() {
  committer_.stop();
  watch_.reset();
}

Result<void> Shard::watch(const std::function<void(std::string_view)>& heard) {
  if (!place_.postgres) return {};
  watch_.emplace(
      *place_.postgres,
      [this, heard](std::string_view notification) {
        heard(notification);
        notifications_.tell(notification);
      },
      *pulse_);
  return watch_->start();
}

Result<void> Shard::forget_writers() {
  return committer_.write_and_wait([](Writer& writer) {
    // A daemon that does not know the outcome of its COMMIT may still read a younger row.
    writer.connection().run("DELETE FROM writers WHERE written_at < :t",
                            writer.now() - std::chrono::weeks(1));
  });
}

bool Shard::healthy() const {
  return committer_.healthy() && (!pulse_ || pulse_->answers());
}

std::string Shard::failure() const {
  if (healthy()) return {};
  if (committer_.healthy()) return "the database server does not answer";
  auto failure = committer_.last_failure();
  if (!place_.file.empty()) failure = place_.file.string() + ": " + failure;
  return failure;
}

}  // namespace conversed::store
