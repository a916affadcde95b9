#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/result.h"

namespace conversed::store {

// What daemons tell each other of answers to `POST /{URLToken}`, on the topic `answers`.
struct AnswerNews {
  enum class Kind : std::uint8_t {
    given,    // is in the store: for `daemons`, or, if it was keyed, for whoever waits
    settled,  // it is known who gets the outputs, which are of `session`
    // The waits of the clients of `daemons` (one) that were to end at `until` or before are over;
    // `session` may hold outputs for them.
    left,
    ended,  // nothing will answer it; `reason` is for the client
  };
  Kind kind = Kind::given;
  std::string input_id;
  std::vector<std::string> daemons{};
  std::string session{};  // an encoded key; empty: it is too long to be told of
  std::string reason{};
  model::Timestamp until{};  // of `left`
  bool pending = false;      // of `settled`: outputs have become pending

  bool operator==(const AnswerNews&) const = default;
};
// As Writer::announce takes it, topic and all; never more than that takes, if it weren't for the
// session.
[[nodiscard]] std::string to_news(const AnswerNews& news);
[[nodiscard]] std::optional<AnswerNews> answer_news_from(std::string_view payload);

// What any daemon may ask of the one that has a session, on the topic `sessions`; all hear it.
struct SessionNews {
  enum class Kind : std::uint8_t {
    touch,    // to have its lane run once more
    deliver,  // that outputs of it are pending in the store
  };
  Kind kind = Kind::touch;
  std::string session;  // an encoded key

  bool operator==(const SessionNews&) const = default;
};
// Of a session whose key is too long: that something may have been missed.
[[nodiscard]] std::string to_news(const SessionNews& news);
[[nodiscard]] std::optional<SessionNews> session_news_from(std::string_view payload);

// Answers on their way from the daemon that ran the Turn to those whose clients wait (Unit::replies
// writes them). Whoever removes a reply decides, in that transaction, where the outputs go that
// were held for it and behind it: the first client that got its answer has them, and if nobody is
// left that could get it, they are pending. What an execution holds for its own client, and what
// hangs on another reply of the same chain, is left to those. A Unit of whoever runs the session
// next takes back what is left of an earlier chain's (Unit::held_released). Thread-safe; what
// writes blocks only while the Committer takes no more, never on its own thread, and calls back
// there.
class Replies {
 public:
  // Both must outlive it.
  Replies(Database& database, Committer& committer) : database_(database), committer_(committer) {}

  struct Settled {
    // `kept`: there was no reply, but the input was keyed and has an answer.
    enum class Found : std::uint8_t { nothing, reply, kept };
    Found found = Found::nothing;
    int status = 200;
    std::string body;
    std::string session;  // of `reply`: its encoded key
    bool else_webhook = false;
    bool given = false;  // there was somebody to give it to, when the transaction asked
  };

  // Takes the reply to this daemon's clients. `awaited` is asked in each try of the transaction, on
  // the Committer's thread, and only where outputs hang on it; must not block.
  void settle(const std::string& daemon, const std::string& input_id, std::function<bool()> awaited,
              std::function<void(model::Result<Settled>)> done);

  // Takes back what nobody has settled. `done`: whether outputs have become pending.
  void take_back(const std::string& input_id, std::function<void(model::Result<bool>)> done);

  // The same for what has expired at `now`, at most `limit` inputs, telling the daemons that have
  // the sessions: each input by itself, so that one that can't be keeps no other. Blocks on the
  // disk; costs a read where there is nothing. The error is the first one's.
  [[nodiscard]] model::Result<void> take_back_expired(model::Timestamp now, std::size_t limit);

  // A client that was to have them is not there after all: outputs of the input become pending, and
  // all daemons are told; unless the session has said something to the webhook since
  // (release_outputs in store/commit/row_writes.h).
  void give_back(const std::string& session, const std::string& input_id);

  // Inputs with a reply to this daemon, at most `limit`. Blocks on the disk.
  [[nodiscard]] model::Result<std::vector<std::string>> addressed_to(const std::string& daemon,
                                                                     std::size_t limit) const;

  void tell(const AnswerNews& news);
  void tell(const SessionNews& news);

 private:
  void announce(std::string news);

  Database& database_;
  Committer& committer_;
};

}  // namespace conversed::store
