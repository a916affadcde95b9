#include "daemon/turns/answer_exchange.h"

#include <algorithm>
#include <utility>

#include "api/live/waiters.h"
#include "daemon/ops/logging.h"
#include "daemon/turns/partition_keeper.h"
#include "store/store.h"

namespace conversed::daemon {

using model::Errc;
using model::Result;
using std::chrono::steady_clock;
using store::AnswerNews;
using store::SessionNews;

namespace {

constexpr std::size_t max_looked_up = 1'000;  // replies at once; the rest is taken back
// That wait for the thread; what comes then is found by a look.
constexpr std::size_t max_waiting = 1'000;
constexpr std::size_t max_taken_back = 200;  // at once; the rest at the next sweep
// By then the deadlines of the clients have passed, too.
constexpr std::chrono::seconds remembered_left{60};

}  // namespace

AnswerExchange::AnswerExchange(AnswerExchangeSettings settings, store::Store& store,
                               api::AnswerWaiters& waiters, Now now, AnswerExchangePorts ports)
    : settings_(std::move(settings)),
      store_(store),
      waiters_(waiters),
      now_(std::move(now)),
      ports_(std::move(ports)) {}

AnswerExchange::~AnswerExchange() {
  stop();
}

Result<void> AnswerExchange::start() {
  answers_ = store_.news().subscribe(std::string(store::answers_topic),
                                     [this](std::string_view payload) { hear_answer(payload); });
  sessions_ = store_.news().subscribe(std::string(store::sessions_topic),
                                      [this](std::string_view payload) { hear_session(payload); });
  // Nobody watches it: it waits for the store, which others see to.
  return thread_.start("exchange of answers", nullptr, [this] { run(); });
}

void AnswerExchange::stop() {
  answers_ = {};
  sessions_ = {};
  std::vector<Settled> waiting;
  state_.with([&](State& state) {
    state.stopped = true;
    for (auto& [input, owed] : state.owed) {
      if (owed.then) waiting.push_back(std::move(owed.then));
    }
    state.owed.clear();
  });
  deadlines_.stop();
  thread_.stop();
  // Whoever takes the replies tells the daemon that has the sessions by then.
  for (const Settled& then : waiting) then(false);
}

void AnswerExchange::run() {
  // What was there before: an earlier run of this daemon may have left replies behind. Of sessions
  // it has none yet.
  look_for_replies();
  for (;;) {
    sweep();
    const auto next_sweep = steady_clock::now() + settings_.sweep_interval;
    while (steady_clock::now() < next_sweep) {
      const auto letters = thread_.take(next_sweep);
      for (const auto& work : letters.work) work();
      if (letters.stop) return;
      if (letters.look) look_again();
    }
  }
}

void AnswerExchange::post_look() {
  thread_.mailbox()->put([](Letters& letters) { letters.look = true; });
}

void AnswerExchange::post_settle(const std::string& input_id, Expects expects) {
  thread_.mailbox()->put([&](Letters& letters) {
    if (letters.work.size() >= max_waiting) {
      letters.look = true;
      return;
    }
    letters.work.emplace_back([this, input_id, expects] { settle(input_id, expects); });
  });
}

std::vector<std::string> AnswerExchange::elsewhere(const std::string& input_id,
                                                   std::span<const model::Awaited> awaited) const {
  std::vector<std::string> daemons;
  if (awaited.empty()) return daemons;
  const auto now = now_();
  state_.with([&](const State& state) {
    for (const auto& each : awaited) {
      if (each.daemon == settings_.daemon) continue;
      if (each.until + settings_.clock_tolerance <= now) continue;
      const auto left = state.left.find({input_id, each.daemon});
      if (left != state.left.end() && each.until <= left->second.until) continue;
      daemons.push_back(each.daemon);
    }
  });
  return daemons;
}

std::optional<model::Timestamp> AnswerExchange::waited_until(
    const std::string& input_id, std::span<const model::Awaited> awaited) const {
  const auto daemons = elsewhere(input_id, awaited);
  std::optional<model::Timestamp> until;
  for (const auto& each : awaited) {
    if (std::ranges::find(daemons, each.daemon) == daemons.end()) continue;
    until = std::max(until.value_or(each.until), each.until);
  }
  if (until) *until += settings_.clock_tolerance;
  return until;
}

void AnswerExchange::expect(const std::string& input_id) {
  state_.with([&](State& state) { state.owed[input_id] = {}; });
}

void AnswerExchange::forget(const std::string& input_id) {
  state_.with([&](State& state) { state.owed.erase(input_id); });
}

void AnswerExchange::when_settled(const std::string& input_id, Settled then) {
  bool pending = false;
  state_.with([&](State& state) {
    const auto place = state.owed.find(input_id);
    if (place == state.owed.end() || state.stopped) return;
    Owed& owed = place->second;
    if (owed.settled) {  // they were quicker than our own Committer
      pending = owed.pending;
      state.owed.erase(place);
      return;
    }
    owed.then = std::exchange(then, {});
    owed.deadline = deadlines_.add(steady_clock::now() + settings_.patience, [this, input_id] {
      thread_.mailbox()->put([&](Letters& letters) {
        letters.work.emplace_back([this, input_id] { take_back(input_id); });
      });
    });
  });
  if (then) then(pending);
}

void AnswerExchange::touch_at(const model::SessionKey& key, model::Timestamp when) {
  deadlines_.add(steady_clock::now() + (when - now_()), [this, key] { ports_.touch(key); });
}

void AnswerExchange::left(const std::string& input_id, const model::SessionKey& key,
                          model::Timestamp until) {
  ports_.touch(key);
  // Whose thread this is ends other waits, too.
  thread_.mailbox()->put([&](Letters& letters) {
    letters.work.emplace_back(
        [this, news = AnswerNews{.kind = AnswerNews::Kind::left,
                                 .input_id = input_id,
                                 .daemons = {settings_.daemon},
                                 .session = key.encode(),
                                 .until = until}] { store_.replies().tell(news); });
  });
}

void AnswerExchange::ended(const std::string& input_id, const std::string& reason) {
  store_.replies().tell(
      AnswerNews{.kind = AnswerNews::Kind::ended, .input_id = input_id, .reason = reason});
}

void AnswerExchange::touch(const model::SessionKey& key) {
  ports_.touch(key);
  store_.replies().tell(SessionNews{SessionNews::Kind::touch, key.encode()});
}

void AnswerExchange::deliver(const model::SessionKey& key) {
  ports_.deliver(key);
  store_.replies().tell(SessionNews{SessionNews::Kind::deliver, key.encode()});
}

void AnswerExchange::hear_answer(std::string_view payload) {
  if (payload.empty()) return post_look();
  const auto news = store::answer_news_from(payload);
  if (!news) return;
  switch (news->kind) {
    case AnswerNews::Kind::given:
      if (std::ranges::find(news->daemons, settings_.daemon) != news->daemons.end()) {
        post_settle(news->input_id, Expects::reply);
      } else if (waiters_.awaited(news->input_id)) {
        post_settle(news->input_id, Expects::kept);
      }
      return;
    case AnswerNews::Kind::settled:
      return note_settled(*news);
    case AnswerNews::Kind::left:
      return note_left(*news);
    case AnswerNews::Kind::ended:
      return waiters_.fail(news->input_id, {Errc::internal, news->reason});
  }
}

void AnswerExchange::hear_session(std::string_view payload) {
  if (payload.empty()) return post_look();
  const auto news = store::session_news_from(payload);
  if (!news) return;
  const auto key = model::SessionKey::decode(news->session);
  if (!key) return;
  (news->kind == SessionNews::Kind::touch ? ports_.touch : ports_.deliver)(*key);
}

// For a reply the time-out of the clients is held back, as for a Turn of this daemon; where there
// is none, the claim may be such a Turn's.
void AnswerExchange::settle(const std::string& input_id, Expects expects) {
  if (expects == Expects::reply) (void)waiters_.claim(input_id);
  store_.replies().settle(
      settings_.daemon, input_id, [this, input_id] { return waiters_.keep_waiting(input_id); },
      [this, input_id, expects](const Result<store::Replies::Settled>& settled) {
        if (settled) return give(input_id, expects, *settled);
        log::warn("an answer from another daemon can't be taken",
                  {{"inputId", input_id}, {"error", settled.error().message}});
        if (expects == Expects::reply) waiters_.release(input_id);
      });
}

void AnswerExchange::give(const std::string& input_id, Expects expects,
                          const store::Replies::Settled& settled) {
  using Found = store::Replies::Settled::Found;
  const bool failed = settled.status >= 400;
  // It was taken back, or comes yet: the deadline ends the wait. A failure that is kept says that
  // the key is free: whoever waits here under it takes the place of what failed. What a look for
  // kept answers has found may be a reply all the same, and is taken with it.
  if (settled.found == Found::nothing || !settled.given ||
      (failed && settled.found == Found::kept)) {
    if (expects == Expects::reply) waiters_.release(input_id);
    return;
  }
  if (failed) {
    return waiters_.fail(input_id, {Errc::internal, "The message could not be processed."});
  }
  const bool told = waiters_.finish(input_id, {settled.status, settled.body});
  // The COMMIT took longer than the client's patience.
  if (!told && settled.else_webhook) store_.replies().give_back(settled.session, input_id);
}

void AnswerExchange::note_settled(const AnswerNews& news) {
  enum class Here : std::uint8_t { unknown, not_committed, waits };
  const Here here = state_.with([&](State& state) {
    const auto place = state.owed.find(news.input_id);
    if (place == state.owed.end()) return Here::unknown;
    place->second.settled = true;
    place->second.pending = news.pending;
    return place->second.then ? Here::waits : Here::not_committed;
  });
  if (here == Here::waits) conclude(news.input_id, news.pending);
  if (here != Here::unknown || !news.pending) return;
  // Whoever ran the Turn may be gone, and the session be here now. Without its key, whoever looks
  // for what is due finds it.
  if (const auto key = model::SessionKey::decode(news.session)) ports_.deliver(*key);
}

void AnswerExchange::note_left(const AnswerNews& news) {
  state_.with([&](State& state) {
    for (const auto& daemon : news.daemons) {
      Left& left = state.left[{news.input_id, daemon}];
      left = {std::max(left.until, news.until), steady_clock::now()};
    }
  });
  touch_here(news.session);
}

void AnswerExchange::touch_here(const std::string& session) {
  if (session.empty()) return post_look();
  if (const auto key = model::SessionKey::decode(session)) ports_.touch(*key);
}

void AnswerExchange::take_back(const std::string& input_id) {
  const bool owed = state_.with([&](const State& state) { return state.owed.contains(input_id); });
  if (!owed) return;
  store_.replies().take_back(input_id, [this, input_id](const Result<bool>& pending) {
    // If it can't be, whoever sweeps does it.
    conclude(input_id, pending && *pending);
  });
}

// A lane that waits goes on.
void AnswerExchange::conclude(const std::string& input_id, bool pending) {
  Settled then;
  api::Deadlines::Token deadline;
  state_.with([&](State& state) {
    const auto place = state.owed.find(input_id);
    if (place == state.owed.end()) return;
    then = std::move(place->second.then);
    deadline = place->second.deadline;
    state.owed.erase(place);
  });
  if (!then) return;
  deadlines_.cancel(deadline);
  then(pending);
}

// What has come for this daemon.
void AnswerExchange::look_for_replies() {
  const auto inputs = store_.replies().addressed_to(settings_.daemon, max_looked_up);
  if (!inputs) {
    return log::warn("answers from other daemons can't be read",
                     {{"error", inputs.error().message}});
  }
  for (const auto& input : *inputs) settle(input, Expects::reply);
}

// Something may have been missed: replies, what has been answered, and what was asked of sessions;
// what is due for a webhook is looked for by the Deliverer. Those who wait for it to settle replies
// have their deadlines.
void AnswerExchange::look_again() {
  look_for_replies();
  for (const auto& input : waiters_.inputs()) settle(input, Expects::kept);
  if (auto read = for_each_to_drain(store_, ports_.touch); !read) {
    log::warn("sessions that wait can't be read", {{"error", read.error().message}});
  }
}

void AnswerExchange::sweep() {
  if (auto swept = store_.replies().take_back_expired(now_(), max_taken_back); !swept) {
    log::warn("answers that nobody took can't be taken back", {{"error", swept.error().message}});
  }
  state_.with([](State& state) {
    const auto before = steady_clock::now() - remembered_left;
    std::erase_if(state.left, [&](const auto& entry) { return entry.second.heard_at < before; });
  });
}

}  // namespace conversed::daemon
