// How clients are answered whose conversations are at another daemon.
#include <chrono>
#include <string>
#include <utility>

#include "daemon/app_parts.h"
#include "daemon/part_settings.h"

namespace conversed::daemon {

using std::chrono::milliseconds;

// All daemons hear of it; the session is one's.
void App::Parts::touch_lane(const model::SessionKey& key) {
  if (!ownership.owns(key)) return;
  // Without lanes: all that waits is drained when there are some.
  if (auto* all = lanes_to_touch.load(); all != nullptr) all->touch(key.encode());
}

void App::Parts::exchange_answers() {
  if (!in_cluster(settings)) return;
  AnswerExchangeSettings own;
  own.daemon = member_name(settings);
  exchange.emplace(
      std::move(own), *store, waiters, [this] { return timer_clock.now(); },
      AnswerExchangePorts{
          .touch = [this](const model::SessionKey& key) { touch_lane(key); },
          .deliver = [this](const model::SessionKey& key) { deliverer.offer_earlier(key); },
      });
  heard_outputs =
      store->news().subscribe(std::string(store::outputs_topic),
                              [this](std::string_view sessions) { watch.heard(sessions); });
  heard_jobs = store->news().subscribe(std::string(store::jobs_topic), [this](std::string_view id) {
    id.empty() ? job_watch.notify_all() : job_watch.notify(std::string(id));
  });
}

void App::Parts::tell_of_answers(api::Services& with) {
  if (exchange) {
    with.awaited_for = [this](milliseconds time) { return exchange->awaited_for(time); };
    with.touch = [this](const model::SessionKey& key) { exchange->touch(key); };
    with.deliver = [this](const model::SessionKey& key) { exchange->deliver(key); };
    with.left = [this](const std::string& input_id, const model::SessionKey& key,
                       model::Timestamp until) { exchange->left(input_id, key, until); };
    with.ended_elsewhere = [this](const std::string& input_id, const std::string& reason) {
      exchange->ended(input_id, reason);
    };
    return;
  }
  with.touch = [this](const model::SessionKey& key) { touch_lane(key); };
  with.deliver = [this](const model::SessionKey& key) { deliverer.offer_earlier(key); };
  with.left = [this](const std::string&, const model::SessionKey& key, model::Timestamp) {
    touch_lane(key);
  };
}

}  // namespace conversed::daemon
