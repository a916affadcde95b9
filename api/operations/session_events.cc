// GET /management/sessions/events: a session's changes as server-sent events. An answer has at
// most one event and then ends; the client asks again, with the event's id. So a stream waits as a
// poll for outputs does, and no thread waits with it.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "api/live/pending_replies.h"
#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/runtime/guarded.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using namespace openapi;

constexpr int max_streams = 200;
// Browsers and proxies end connections on which nothing comes for long.
constexpr std::chrono::milliseconds max_event_wait{20'000};
// Commits of Turns notify a stream. A try of a delivery or of a call does not, so the stream looks
// for it: at the time of the next try, but not more often than this.
constexpr std::chrono::milliseconds min_look{1'000};

// A place among the streams of this daemon. An organisation gets a place only while it has fewer
// places than are free. So the others always find free places: if n organisations want all places,
// each gets 1/(n+1) of them.
class StreamPlace {
 public:
  explicit StreamPlace(std::string organisation) : organisation_(std::move(organisation)) {
    taken_ = taken().with([&](Taken& streams) {
      int& own = streams.of[organisation_];
      const bool free = own < max_streams - streams.all;
      if (free) ++own, ++streams.all;
      return free;
    });
  }
  ~StreamPlace() {
    if (!taken_) return;
    taken().with([&](Taken& streams) {
      --streams.all;
      if (--streams.of[organisation_] == 0) streams.of.erase(organisation_);
    });
  }
  StreamPlace(const StreamPlace&) = delete;
  StreamPlace& operator=(const StreamPlace&) = delete;
  [[nodiscard]] bool is_taken() const { return taken_; }

 private:
  struct Taken {
    int all = 0;
    std::map<std::string, int> of;  // by organisation
  };
  static model::Guarded<Taken>& taken() {
    static model::Guarded<Taken> streams;
    return streams;
  }
  const std::string organisation_;
  bool taken_ = false;
};

using Mark = store::Sessions::Mark;

struct SessionStream {
  const model::SessionKey key;
  const std::string known;  // the id of the event that the client has
  const std::chrono::steady_clock::time_point deadline;
  Reply reply;
  const StreamPlace place;
};
using StreamPtr = std::shared_ptr<SessionStream>;

void send_event(Reply& reply, const std::string& text) {
  reply.send({.status = status::ok,
              .content_type = "text/event-stream",
              .headers = {{"Cache-Control", "no-store"}},
              .body = "retry: 250\n" + text + "\n"});
}

Result<Mark> mark_of_session(MessageServices& services, const model::SessionKey& key) {
  auto mark = services.store.of(key).sessions().mark(key);
  if (!mark) return model::fail(store_error(mark.error()));
  if (!*mark) return model::fail(Errc::not_found, "there is no such session");
  return **std::move(mark);
}

void send_mark(SessionStream& stream, const Result<Mark>& mark) {
  if (!mark) return stream.reply.fail(mark.error());
  if (mark->id == stream.known) return send_event(stream.reply, ": nothing new\n");
  send_event(stream.reply,
             "id: " + mark->id + "\ndata: {\"version\":" + std::to_string(mark->version) + "}\n");
}

std::chrono::milliseconds next_look(const Mark& mark, MessageServices& services) {
  if (!mark.next_try) return max_event_wait;
  return std::clamp(*mark.next_try - services.store.timer_now(), min_look, max_event_wait);
}

// `seen` is the session's last known mark.
void wait_for_change(const StreamPtr& stream, MessageServices& services, const Mark& seen) {
  const auto now = services.options.steady_now();
  const auto until = std::min(stream->deadline, now + next_look(seen, services));
  // Watches before it looks, so a commit in between is noticed.
  const auto ticket = services.watch.watch(
      outputs_name(stream->key), until, [stream, &services, seen, until](WatchEnd why) {
        if (why == WatchEnd::stopped) return send_event(stream->reply, ": nothing new\n");
        if (why == WatchEnd::notified || until < stream->deadline) {
          return wait_for_change(stream, services, seen);
        }
        send_mark(*stream, mark_of_session(services, stream->key));
      });
  const auto mark = mark_of_session(services, stream->key);
  if (mark && mark->id == stream->known) return;
  if (services.watch.cancel(ticket)) send_mark(*stream, mark);
}

void session_events(Call call, MessageServices& services, Reply reply) {
  auto token = required_parameter(call.request, "URLToken");
  if (!token) return reply.fail(token.error());
  auto key = session_of(services.assets, *call.principal, *token,
                        call.request.parameter("userId").value_or(""),
                        call.request.parameter("sessionId").value_or(""));
  if (!key) return reply.fail(key.error());
  const auto mark = mark_of_session(services, *key);
  if (!mark) return reply.fail(mark.error());
  const StreamPtr stream(
      new SessionStream{.key = *std::move(key),
                        .known = std::string(call.request.header("last-event-id").value_or("")),
                        .deadline = services.options.steady_now() + max_event_wait,
                        .reply = std::move(reply),
                        .place = StreamPlace(call.principal->organisation_id)});
  if (!stream->place.is_taken()) {
    return stream->reply.fail({Errc::too_many, "too many streams are open; try again later"});
  }
  wait_for_change(stream, services, *mark);
}

// The fields of a server-sent event (WHATWG HTML, 9.2).
Schema sent_event_schema() {
  return object({{"id", text(1), Need::optional},
                 {"event", text(1), Need::optional},
                 {"data", text(1), Need::optional},
                 {"retry", integer(0), Need::optional}});
}

Description describe_session_events() {
  const auto name = [](const char* parameter, const char* what) {
    return query_parameter(parameter, what, conversation_name(), Need::required);
  };
  return {
      .summary = "Hear of a session's changes",
      .details =
          "Server-sent events. Each answer has at most one event, and then ends; `EventSource` "
          "asks again by itself. An event comes after each Turn, and after each try of a delivery "
          "or of a call. Without a known event it comes at once. An organisation has a share of "
          "the streams; further ones are refused with 429.",
      .parameters = {query_parameter("URLToken", "The Endpoint.", url_token(), Need::required),
                     name("userId", "The user."), name("sessionId", "The session."),
                     header_parameter("Last-Event-ID", "The id of the known event.", text())},
      .answers = {{.description = "An event, or none after some seconds.",
                   .content = {{"text/event-stream", sent_event_schema()}}}},
      .errors = {404}};
}

}  // namespace

Operations session_events_operations() {
  static constexpr Operation rows[] = {
      for_operators("hearSession", Method::get, "/management/sessions/events",
                    Role::conversation_admin, session_events, describe_session_events,
                    Audited::never),
  };
  return rows;
}

}  // namespace conversed::api
