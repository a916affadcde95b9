#include "store/commit/partition_gate.h"

#include "store/model/session_keys.h"
#include "store/sql/read.h"

namespace conversed::store {
namespace {

void note_change(Connection& connection) {
  if (!has_partition_list(connection)) {
    throw SqlError(SqlError::Kind::failed, "(the server has no list of partitions yet)",
                   SqlError::Effect::none);
  }
  connection.run(
      "INSERT INTO meta (name, value) VALUES ('open_partitions', 1)"
      " ON CONFLICT (name) DO UPDATE SET value = meta.value + 1");
}

}  // namespace

void PartitionGate::ask(Connection& connection) {
  asked_ = connection.ask<std::int64_t>("SELECT value FROM meta WHERE name = 'open_partitions'");
}

void PartitionGate::look(Connection& connection) {
  if (!asked_) return;
  const auto row = asked_->take();
  asked_.reset();
  const auto version = row ? std::optional(std::get<0>(*row)) : std::nullopt;
  if (version == seen_) return;
  const auto partitions =
      connection.value<std::size_t>("SELECT value FROM meta WHERE name = 'log_partitions'");
  open_.assign(partitions.value_or(0), false);
  for (const auto each :
       connection.values<std::size_t>("SELECT log_partition FROM open_partitions")) {
    if (each < open_.size()) open_[each] = true;
  }
  seen_ = version;
}

bool PartitionGate::is_open(std::string_view key) const {
  if (open_.empty()) return true;
  const auto partition = model::partition_of(key, static_cast<std::int32_t>(open_.size()));
  return open_[static_cast<std::size_t>(partition)];
}

Result<void> PartitionGate::check(std::string_view key) const {
  if (is_open(key)) return {};
  return fail(Errc::unavailable,
              "the user's data is being moved to another server; try again in a moment");
}

bool has_partition_list(Connection& connection) {
  return connection.exists("SELECT 1 FROM meta WHERE name = 'log_partitions'");
}

void note_log_partitions(Connection& connection, std::int32_t partitions) {
  connection.run("INSERT INTO meta (name, value) VALUES ('log_partitions', :n)", partitions);
  note_change(connection);
}

void open_partition(Connection& connection, std::int32_t partition) {
  connection.run(
      "INSERT INTO open_partitions (log_partition) VALUES (:p) ON CONFLICT (log_partition)"
      " DO NOTHING",
      partition);
  forget_leftovers(connection, partition);
  note_change(connection);
}

void close_partition(Connection& connection, std::int32_t partition) {
  connection.run("DELETE FROM open_partitions WHERE log_partition = :p", partition);
  connection.run(
      "INSERT INTO partition_leftovers (log_partition) VALUES (:p) ON CONFLICT (log_partition)"
      " DO NOTHING",
      partition);
  note_change(connection);
}

std::vector<std::int32_t> partition_leftovers(Connection& connection) {
  return connection.values<std::int32_t>(
      "SELECT log_partition FROM partition_leftovers ORDER BY log_partition");
}

void forget_leftovers(Connection& connection, std::int32_t partition) {
  connection.run("DELETE FROM partition_leftovers WHERE log_partition = :p", partition);
}

bool is_partition_open(Connection& connection, std::int32_t partition) {
  return connection.exists("SELECT 1 FROM open_partitions WHERE log_partition = :p", partition);
}

}  // namespace conversed::store
