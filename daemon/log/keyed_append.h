#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "queue/keyed_append.h"
#include "queue/log.h"
#include "store/idempotency/append_keys.h"
#include "store/model/clock.h"

namespace conversed::daemon {

// Appends under a key for a log that keeps no keys: they are rows of the store. The row is written
// first, then the record, then the record's position in the row. A crash in between, or an append
// of unknown outcome, leaves a row without a position: the next use of the key appends again under
// the row's id. So a record may be in the log twice, and has to carry a claim. Only an append that
// certainly failed frees its key. A client waits for the row and for the record only, each within
// its own time limit. Thread-safe. Uses of one key by this process run one after the other.
// Kept by: KeyedAppendTest.AfterAnUnknownOutcomeTheNextUseRunsUnderTheFirstId,
// KeyedAppendTest.ACertainRefusalFreesItsKey.
class StoredKeyedAppend final : public queue::KeyedAppend {
 public:
  // Gives the record's event the id `id`, in every place of the record that names it.
  using Rename = std::function<void(queue::Record& record, const std::string& id)>;

  // All must outlive it, and the log has to be stopped before it is destroyed.
  StoredKeyedAppend(queue::Log& log, store::AppendKeys& keys, const model::Clock& clock,
                    Rename rename)
      : log_(log), keys_(keys), clock_(clock), rename_(std::move(rename)) {}

  void append(queue::Record record, queue::AppendKey key, queue::KeyedCallback done) override;
  void look_up(const queue::AppendKey& key, queue::LookUpCallback done) override;

 private:
  struct Use {
    queue::Record record;
    store::AppendKeyUse row;
    queue::KeyedCallback done;
  };
  using Name = std::pair<std::string, std::string>;  // scope and key

  void begin(Use use);
  void reserved(Use use, const store::AppendKeys::Reserved& reserved);
  void appended(const std::shared_ptr<Use>& use, bool fresh,
                const model::Result<queue::Appended>& outcome);
  void finish(const Use& use, model::Result<queue::KeyedAppended> outcome);

  queue::Log& log_;
  store::AppendKeys& keys_;
  const model::Clock& clock_;
  const Rename rename_;
  std::mutex mutex_;
  std::map<Name, std::deque<Use>> waiting_;  // by key in hand: its waiting uses
};

// For records of Events: their claim names the event, too.
void rename_event(queue::Record& record, const std::string& id);

}  // namespace conversed::daemon
