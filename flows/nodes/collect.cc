// Collects a burst of injects. Those that fit leave the list of untaken injects
// (Turn::untaken_events) for the Node's memory. They run together, in one Turn behind the Node.
#include <algorithm>
#include <utility>

#include "flows/json_members.h"
#include "flows/node_types.h"
#include "flows/nodes/event_wait.h"
#include "store/text/times.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

// Of the events that the Node keeps, together, as JSON text, roughly. With more it continues.
constexpr std::size_t most_collected_bytes = std::size_t{64} << 10;

std::int64_t number_of_event(const json& kept) {
  return find_count(kept, "n").value_or(0);
}

std::string id_of_event(const json& kept) {
  const json* event = find_member(kept, Turn::input_event);
  const std::string* id = event == nullptr ? nullptr : find_text(*event, "id");
  return id == nullptr ? std::string() : *id;
}

// The event as `input.events` has it.
json shown_event(const json& kept) {
  const json* stored = find_member(kept, Turn::input_event);
  json event = stored != nullptr && stored->is_object() ? *stored : json::object();
  event["time"] = text::iso_time(model::from_unix_ms(find_count(kept, "at").value_or(0)));
  return event;
}

json shown_events(const json& events) {
  json list = json::array();
  for (const auto& kept : events) list.push_back(shown_event(kept));
  return list;
}

struct CollectNode final : Node {
  std::chrono::milliseconds quiet{};
  std::optional<expression::Expression> fits;  // empty: each inject does
  int max_events = 0;
  std::chrono::milliseconds max_wait{};
  std::optional<expression::Path> store_in;
  std::chrono::milliseconds time_out{};   // for the first event
  std::optional<NodeIndex> if_timed_out;  // empty: the execution ends
  OnMessage on_message;
  std::chrono::milliseconds look_back{};

  void check(NodeConfig& config) {
    if (max_wait < quiet) {
      config.problem("maxWait", "'maxWait' is shorter than 'quiet', so 'quiet' has no effect");
    }
  }

  // Behind a message the events wait for a Turn of their own. If that fails, the user's message is
  // not lost with it.
  Result<Step> run(Turn& turn) const override {
    const bool is_back = on_message.leads_back(turn);
    auto burst = recall(turn, is_back);
    if (!burst) return model::fail(burst.error());
    if (auto added = absorb(turn, **burst); !added) return model::fail(added.error());
    return is_back ? Step(wait_on(turn, **burst)) : go_on(turn, **burst);
  }

  Result<Step> on_input(Turn& turn) const override {
    auto burst = recall(turn, true);
    if (!burst) return model::fail(burst.error());
    const auto& source = turn.input_object()["source"];
    if (source == "user" && on_message.first) return Jump{*on_message.first};
    if (source != "inject") return wait_on(turn, **burst);
    auto added = absorb(turn, **burst);
    if (!added) return model::fail(added.error());
    return *added ? go_on(turn, **burst) : wait_on(turn, **burst);
  }

  Result<Step> on_time_out(Turn& turn) const override {
    auto burst = recall(turn, true);
    if (!burst) return model::fail(burst.error());
    // An event that did not fit before may fit now: another Flow received it, or the condition has
    // changed.
    if (auto added = absorb(turn, **burst); !added) return model::fail(added.error());
    if (!(**burst)["events"].empty()) return pass_on(turn, **burst);
    **burst = nullptr;
    return if_timed_out ? Step(Jump{*if_timed_out}) : Stop{};
  }
  bool takes_time_out() const override { return true; }
  bool keeps_injects() const override { return true; }

  Result<bool> takes_inject(Turn& turn) const override {
    auto& untaken = turn.untaken_events();
    return !untaken.empty() && number_of_event(untaken.back()) == turn.execution() &&
           does_fit(turn, untaken.back());
  }

  Awaits awaits() const override { return Awaits::input; }

 private:
  // The burst in the Node's memory. `from`: the number of the first execution whose inject counts.
  // `until`: when the time for the first event is over, in Unix milliseconds. `events`: as in
  // Turn::untaken_events. A new burst begins with the events that the Node kept when a Node of
  // `onMessage` led elsewhere.
  Result<json*> recall(Turn& turn, bool goes_on) const {
    auto memory = turn.memory();
    if (!memory) return memory;
    json& burst = **memory;
    const bool is_begun = find_count(burst, "from") && find_count(burst, "until");
    const json* known = find_member(burst, "events");
    json events = known != nullptr && known->is_array() ? *known : json::array();
    if (!goes_on || !is_begun) {
      burst = {{"from", first_that_counts(turn, look_back)},
               {"until", now_of(turn) + time_out.count()}};
    }
    burst["events"] = std::move(events);
    return &burst;
  }

  bool does_fit(Turn& turn, json& kept) const {
    if (!fits) return true;
    const ShownEvent shown(turn, kept);
    return fits->truthy(turn.scope());
  }

  // Collects the injects that fit, the oldest first, until the burst is full. Returns whether there
  // was one. Skips earlier injects that can't be stored, because they would make each further input
  // fail. If the inject of this Turn can't be stored, only this Turn fails.
  Result<bool> absorb(Turn& turn, json& burst) const {
    auto& events = burst["events"];
    auto& untaken = turn.untaken_events();
    const auto before = events.size();
    for (std::size_t i = 0; i < untaken.size() && !is_full(turn, events);) {
      auto& kept = untaken[i];
      const auto number = number_of_event(kept);
      if (number < find_count(burst, "from").value_or(0) || !does_fit(turn, kept)) {
        ++i;
        continue;
      }
      if (auto good = check_store(turn, events, kept); !good) {
        if (number == turn.execution()) return model::fail(good.error());
        turn.log("passes over injects up to " + id_of_event(kept) + ": " + good.error().message);
        burst["from"] = number + 1;
        continue;
      }
      events.push_back(std::move(kept));
      untaken.erase(i);
    }
    turn.input_object().erase(Turn::input_event);
    return events.size() > before;
  }

  Result<void> check_store(Turn& turn, const json& events, const json& kept) const {
    if (!store_in) return {};
    json list = shown_events(events);
    list.push_back(shown_event(kept));
    return turn.check_assign(*store_in, std::move(list));
  }

  bool is_full(Turn& turn, const json& events) const {
    return events.size() >= static_cast<std::size_t>(max_events) ||
           turn.measure(events, most_collected_bytes) > most_collected_bytes;
  }

  // When the burst is over, Unix milliseconds. Another daemon's clock may have been ahead.
  std::int64_t end_of(Turn& turn, const json& events) const {
    const auto now = now_of(turn);
    if (is_full(turn, events)) return now;
    auto first = now;
    std::int64_t last = 0;
    for (const auto& kept : events) {
      const auto at = std::min(find_count(kept, "at").value_or(0), now);
      first = std::min(first, at);
      last = std::max(last, at);
    }
    return std::min(last + quiet.count(), first + max_wait.count());
  }

  Result<Step> go_on(Turn& turn, json& burst) const {
    const auto& events = burst["events"];
    if (!events.empty() && end_of(turn, events) <= now_of(turn)) return pass_on(turn, burst);
    auto wait = wait_on(turn, burst);
    wait.renews = true;
    return wait;
  }

  Wait wait_on(Turn& turn, const json& burst) const {
    const auto& events = burst["events"];
    if (events.empty()) {
      return {left_until(turn, find_count(burst, "until").value_or(0)), Wait::For::event};
    }
    if (number_of_event(events.back()) == turn.execution()) turn.note_kept();
    return {left_until(turn, end_of(turn, events)), Wait::For::burst};
  }

  // Continues with the events, in the order of the log.
  static bool is_before(const json& a, const json& b) {
    return number_of_event(a) < number_of_event(b);
  }
  Result<Step> pass_on(Turn& turn, json& burst) const {
    json events = std::exchange(burst, nullptr)["events"];
    std::stable_sort(events.begin(), events.end(), is_before);
    for (const auto& kept : events) {
      if (number_of_event(kept) != turn.execution()) turn.note_run(id_of_event(kept));
    }
    json list = shown_events(events);
    turn.input_object()["events"] = list;
    return step_after(store_in ? turn.assign(*store_in, std::move(list)) : Result<void>());
  }
};

constexpr NodeField collect_fields[]{
    required<&CollectNode::quiet>("quiet").within(std::chrono::seconds(1), std::chrono::hours(24)),
    optional<&CollectNode::fits>("if"),
    optional<&CollectNode::max_events>("maxEvents").within(1, 100).by_default(20),
    optional<&CollectNode::max_wait>("maxWait")
        .within(std::chrono::seconds(1), std::chrono::hours(24 * 7))
        .by_default(std::chrono::minutes(5)),
    optional<&CollectNode::store_in>("storeIn"),
    optional<&CollectNode::time_out>("timeout")
        .within(std::chrono::seconds(1), std::chrono::hours(24 * 30))
        .by_default(std::chrono::hours(24)),
    optional<&CollectNode::if_timed_out>("onTimeout"),
    optional<&CollectNode::on_message, &OnMessage::read>("onMessage").as(Form::nodes),
    optional<&CollectNode::look_back>("lookBack")
        .within(std::chrono::milliseconds(0), std::chrono::hours(24 * 30))
        .by_default(std::chrono::hours(1))};

}  // namespace

constinit const NodeType collect_node{.name = "collect",
                                      .shorthand = "quiet",
                                      .keeps_injects = true,
                                      .fields = collect_fields,
                                      .create = create<CollectNode>};

}  // namespace conversed::flows
