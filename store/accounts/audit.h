#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/shards/shard.h"

namespace conversed::store {

// One operation of one actor, attempted or done. An unknown text is empty.
struct AuditEntry {
  std::string id;        // model::new_id()
  std::int64_t row = 0;  // ascends with time; for paging; set when it is read
  model::Timestamp at{};
  std::string organisation_id;  // of the actor
  std::string user_id;          // of the actor
  std::string actor;            // the actor's e-mail address at that time
  std::string credential;       // "password", "key ID", "token"; "daemon": by itself
  std::string address;          // of the client
  std::string operation;        // the operationId of the OpenAPI document; "signIn" of a sign-in
  std::string route;            // "DELETE /management/apikeys/{keyId}"
  std::string object;           // "keyId=..., flow=..."
  std::string project_id;       // of the object; set by `begin`, and then stored behind `object`
  std::string subject_user;     // the user of conversations whose data was read or changed
  std::string subject_session;  // the session whose data was read or changed
  int status = 0;               // of the answer; 0: the daemon ended before it answered
  std::string trace_id;
};

// How a request names its project.
struct AuditedProject {
  enum class By : std::uint8_t {
    none,
    id,
    name,  // in the actor's organisation
    flow,
    endpoint,
    url_token,
    connection,
    lexicon,
    knowledge_store,
    job,
    dead_letter,
    schedule,
    output,
    only_one,  // of the actor's organisation
  };
  By by = By::none;
  std::string value{};
};

// Selects entries. Empty texts select all.
struct AuditFilter {
  std::string organisation_id;
  std::string actor;
  std::string operation;
  // The entry's id, its trace, key, a part of its object, or the name of its object's project.
  std::string about{};
};

// The audit trail. Thread-safe.
//
// An entry is durable before its request begins, and gets the answer's status afterwards. Entries
// are removed only by age. The erasure of a user of conversations empties the subject; triggers of
// the database refuse every other change. Kept by: AuditTrailOfRequests.EntriesCannotBeEdited,
// AuditTrailOfRequests.ErasureRemovesTheUserFromEarlierEntries.
class Audit : Rows {
 public:
  // Must outlive it.
  explicit Audit(const Shards& shards)
      : Rows(shards.front()->database(), shards.front()->committer()), shards_(shards) {}

  // Stores the entry and then calls `done` with it, on the Committer's thread or, while the store
  // fails, at once on the caller's. Sets `at`, `project_id`, and `actor` to the address of
  // `user_id`. Without `user_id`, `actor` is the name that was typed at a sign-in: if it is a
  // user's address, the user and the organisation are set; otherwise it is emptied, since it may be
  // a password. The project of a dead letter, a schedule or an output is looked for in all shards;
  // it stays empty if the shard that has the row can't be read.
  // Kept by: ShardsTest.AuditFindsTheProjectOfARowInAnotherShard.
  using Begun = std::function<void(model::Result<AuditEntry>)>;
  void begin(AuditEntry entry, Begun done, AuditedProject project = {});
  // Stores the answer's status. While the store fails, the status is lost and the entry stays
  // without it.
  void end(std::string id, int status);

  // Stores the entry of something that the daemon does by itself, in the transaction that does it.
  // Sets `at`. Throws SqlError.
  static void add(Writer& writer, AuditEntry entry);

  struct Page {
    std::vector<AuditEntry> rows;
    std::optional<std::int64_t> next;  // the `before` of the next page
  };
  // Lists entries before row `before` (0: all), newest first. Examines a bounded number of entries
  // of the organisation, so a page may be shorter than `limit`, even empty, and have a next one.
  // Blocks on the disk. Errors: `unavailable`, `internal`.
  static constexpr std::size_t examined = 10'000;
  [[nodiscard]] model::Result<Page> list(const AuditFilter& filter, std::int64_t before,
                                         std::size_t limit) const;

  // Deletes up to `limit` entries that are older than `before`, oldest first. Returns their number.
  // Blocks.
  [[nodiscard]] model::Result<std::int64_t> prune(model::Timestamp before, std::size_t limit);

 private:
  void begin_in_first(AuditEntry entry, Begun done, AuditedProject project);

  const Shards& shards_;
};

}  // namespace conversed::store
