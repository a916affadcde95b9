// Waits for an inject. The session keeps the injects that no Node has taken (Turn::untaken_events):
// the Node looks through them when it begins to wait and with each input.
#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "flows/json_members.h"
#include "flows/node_types.h"
#include "flows/nodes/event_wait.h"

namespace conversed::flows {
namespace {

constexpr std::size_t max_awaited = 20;
constexpr std::array<const char*, 3> conditions{"if", "any", "all"};

// An inject that the Node waits for.
struct Awaited {
  std::string name;  // empty: it is the only one
  expression::Expression fits;
};

void read_awaited(NodeConfig& config, const View& at, std::vector<Awaited>& into) {
  if (!at.expect_mapping()) return;
  const auto& members = at.value().members();
  if (members.empty()) at.problem("the mapping is empty; name an event with its condition");
  if (members.size() > max_awaited) {
    at.problem("more than " + std::to_string(max_awaited) +
               " events; wait for some of them behind");
  }
  for (const auto& member : members) {
    const View view = at.member(member);
    if (!is_word(member.name, "_")) {
      view.problem("'" + member.name + "' is no name of an event; use letters, digits and '_'");
    }
    into.push_back({member.name, config.condition_at(view)});
  }
  // A stored definition has no other order.
  std::ranges::sort(into, {}, &Awaited::name);
}

struct WaitForEventNode final : Node {
  std::optional<expression::Expression> only;
  std::vector<Awaited> any;
  std::vector<Awaited> all;
  std::optional<expression::Path> store_in;
  std::chrono::milliseconds time_out{};
  std::optional<NodeIndex> if_timed_out;  // empty: the execution ends
  OnMessage on_message;
  std::chrono::milliseconds look_back{};

  void check(NodeConfig& config) {
    const auto has = [&](const char* field) { return config.has(field); };
    if (std::ranges::count_if(conditions, has) != 1) {
      config.problem("", "a waitForEvent has one of 'if', 'any' and 'all'");
    }
    if (only) any.push_back({"", *only});
  }

  Result<Step> run(Turn& turn) const override {
    auto span = recall(turn, on_message.leads_back(turn));
    if (!span) return model::fail(span.error());
    return look(turn, *span, wait_on(turn, *span));
  }

  // The user's message is for `onMessage`. Then the Node runs again.
  Result<Step> on_input(Turn& turn) const override {
    auto span = recall(turn, true);
    if (!span) return model::fail(span.error());
    const bool is_message = turn.input_object()["source"] == "user";
    return look(
        turn, *span,
        is_message && on_message.first ? Step(Jump{*on_message.first}) : wait_on(turn, *span));
  }

  // An event that did not fit before may fit now: another Flow received it, or the condition has
  // changed.
  Result<Step> on_time_out(Turn& turn) const override {
    auto span = recall(turn, true);
    if (!span) return model::fail(span.error());
    auto step = look(turn, *span, if_timed_out ? Step(Jump{*if_timed_out}) : Stop{});
    if (!step) return step;
    return step_after(remember(turn, nullptr), std::move(*step));
  }
  bool takes_time_out() const override { return true; }

  Result<bool> takes_inject(Turn& turn) const override {
    auto span = recall(turn, true);
    if (!span) return model::fail(span.error());
    return !find(turn, span->from).empty();
  }

  Awaits awaits() const override { return Awaits::input; }

 private:
  // One wait, from the first run of the Node until it continues.
  struct Span {
    std::int64_t from = 0;   // the number of the first execution whose inject counts
    std::int64_t until = 0;  // when the time-out is due, Unix milliseconds

    [[nodiscard]] nlohmann::json to_json() const { return {{"from", from}, {"until", until}}; }
  };

  // The wait that goes on, if there is one, otherwise a new one.
  Result<Span> recall(Turn& turn, bool goes_on) const {
    auto memory = turn.memory();
    if (!memory) return model::fail(memory.error());
    const auto from = find_count(**memory, "from");
    const auto until = find_count(**memory, "until");
    if (goes_on && from && until) return Span{*from, *until};
    const Span begun{first_that_counts(turn, look_back), now_of(turn) + time_out.count()};
    **memory = begun.to_json();
    return begun;
  }

  static Result<void> remember(Turn& turn, nlohmann::json span) {
    auto memory = turn.memory();
    if (!memory) return model::fail(memory.error());
    **memory = std::move(span);
    return {};
  }

  static Step wait_on(const Turn& turn, const Span& span) {
    return Wait{left_until(turn, span.until), Wait::For::event};
  }

  // Takes the events and continues if they fit. Skips earlier events that can't be stored, because
  // they would make each further input fail. If the inject of this Turn can't be stored, only this
  // Turn fails.
  Result<Step> look(Turn& turn, Span span, Step otherwise) const {
    auto found = find(turn, span.from);
    while (!found.empty()) {
      auto event = value_of(turn, found);
      const auto fits = store_in ? turn.check_assign(*store_in, event) : Result<void>();
      if (fits) return take(turn, std::move(found), std::move(event));
      const auto last = find_count(turn.untaken_events()[found.back().at], "n").value_or(0);
      if (last == turn.execution()) return model::fail(fits.error());
      turn.log("passes over injects up to " + id_of(turn, found.back()) + ": " +
               fits.error().message);
      span.from = last + 1;
      if (auto done = remember(turn, span.to_json()); !done) return model::fail(done.error());
      found = find(turn, span.from);
    }
    turn.input_object().erase(Turn::input_event);
    return otherwise;
  }

  // An event that fits, by its place in the list.
  struct Found {
    const Awaited* awaited;
    std::size_t at;
  };

  // The oldest event for each condition of `all`, or for the first one of `any`. Empty if the Node
  // still waits.
  std::vector<Found> find(Turn& turn, std::int64_t from) const {
    const auto& awaited = all.empty() ? any : all;
    const std::size_t needed = all.empty() ? 1 : all.size();
    std::vector<Found> found;
    auto& events = turn.untaken_events();
    for (std::size_t i = 0; i < events.size() && found.size() < needed; ++i) {
      if (find_count(events[i], "n").value_or(0) < from) continue;
      const ShownEvent shown(turn, events[i]);
      for (const Awaited& each : awaited) {
        if (found.size() < needed && std::ranges::count(found, &each, &Found::awaited) == 0 &&
            each.fits.truthy(turn.scope())) {
          found.push_back({&each, i});
        }
      }
    }
    if (found.size() < needed) found.clear();
    return found;
  }

  // The value of `input.event`.
  nlohmann::json value_of(Turn& turn, const std::vector<Found>& found) const {
    nlohmann::json value;
    for (const auto& [awaited, at] : found) {
      const auto& event = turn.untaken_events()[at][Turn::input_event];
      if (!all.empty()) {
        value[awaited->name] = event;
        continue;
      }
      value = event;
      if (!awaited->name.empty()) value["name"] = awaited->name;
    }
    return value;
  }

  static std::string id_of(Turn& turn, const Found& found) {
    const auto* id = find_text(turn.untaken_events()[found.at][Turn::input_event], "id");
    return id == nullptr ? std::string() : *id;
  }

  // The events leave the list.
  Result<Step> take(Turn& turn, std::vector<Found> found, nlohmann::json value) const {
    auto& events = turn.untaken_events();
    std::ranges::sort(found, std::greater(), &Found::at);
    std::size_t last = events.size();  // one event may fit several conditions
    for (const auto& [awaited, at] : found) {
      if (std::exchange(last, at) != at) events.erase(at);
    }
    turn.input_object()[Turn::input_event] = value;
    if (auto done = remember(turn, nullptr); !done) return model::fail(done.error());
    return step_after(store_in ? turn.assign(*store_in, std::move(value)) : Result<void>());
  }
};

constexpr NodeField wait_for_event_fields[]{
    optional<&WaitForEventNode::only>("if"),
    optional<&WaitForEventNode::any, &read_awaited>("any").as(Form::expressions),
    optional<&WaitForEventNode::all, &read_awaited>("all").as(Form::expressions),
    optional<&WaitForEventNode::store_in>("storeIn"),
    optional<&WaitForEventNode::time_out>("timeout")
        .within(std::chrono::seconds(1), std::chrono::hours(24 * 30))
        .by_default(std::chrono::hours(24)),
    optional<&WaitForEventNode::if_timed_out>("onTimeout"),
    optional<&WaitForEventNode::on_message, &OnMessage::read>("onMessage").as(Form::nodes),
    optional<&WaitForEventNode::look_back>("lookBack")
        .within(std::chrono::milliseconds(0), std::chrono::hours(24 * 30))
        .by_default(std::chrono::hours(1))};

}  // namespace

constinit const NodeType wait_for_event_node{.name = "waitForEvent",
                                             .shorthand = "if",
                                             .keeps_injects = true,
                                             .fields = wait_for_event_fields,
                                             .create = create<WaitForEventNode>};

}  // namespace conversed::flows
