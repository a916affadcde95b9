#include "store/committer_items.h"

#include <exception>
#include <utility>

namespace conversed::store {

using model::Errc;
using model::fail;
using model::Result;

WriteItem* to_run_alone(Item& item) {
  auto* write = std::get_if<WriteItem>(&item);
  return write != nullptr && write->alone ? write : nullptr;
}

WriteItem* impatient(Item& item) {
  auto* write = std::get_if<WriteItem>(&item);
  const bool is_one =
      write != nullptr && write->done && write->patience == Committer::Patience::none;
  return is_one ? write : nullptr;
}

void end(WriteItem& write, Result<void> result) {
  write.work = nullptr;
  if (auto done = std::exchange(write.done, nullptr)) done(std::move(result));
}

model::Error failing_error() {
  return {Errc::unavailable, "the store can't be written to now; nothing was changed"};
}

model::Error unknown_error() {
  return {Errc::timed_out,
          "the store failed while this was written; whether it was done is not known"};
}

void run_work(Connection& connection, WriteItem& write, model::Timestamp now) {
  // Without work nothing is done in this try, whatever an earlier one did.
  write.on_commit.clear();
  if (!write.work) return;
  connection.savepoint();
  Result<void>& result = write.result;
  Writer writer(connection, now);
  try {
    result = write.work(writer);
    if (result) connection.release_savepoint();
  } catch (const SqlError& error) {
    if (error.kind() != SqlError::Kind::refused) throw;
    result = fail(to_error(error));
  } catch (const std::exception&) {
    result = fail(Errc::internal, "a write could not be made");
  }
  if (result) {
    write.on_commit = writer.take_on_commit();
  } else {
    connection.rollback_to_savepoint();
  }
}

Result<void> run_outside(Connection& connection, const Committer::Work& work,
                         model::Timestamp now) {
  try {
    Writer writer(connection, now);
    return work(writer);
  } catch (const SqlError& error) {
    return fail(to_error(error));
  } catch (const std::exception&) {
    return fail(Errc::internal, "the store could not do this");
  }
}

}  // namespace conversed::store
