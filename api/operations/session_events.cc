// GET /management/sessions/events: a session's versions as server-sent events. An answer has at
// most one event and then ends; a browser's EventSource asks again, with the event's id. So a
// stream waits as a poll for outputs does, and no thread waits with it.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "api/live/pending_replies.h"
#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using namespace openapi;

constexpr int max_streams = 200;
// Browsers and proxies end connections on which nothing comes for long.
constexpr std::chrono::seconds max_event_wait{20};
// The largest whole number that every JSON reader holds exactly.
constexpr std::int64_t max_session_version = 9'007'199'254'740'991;

// A place among the streams of this daemon.
class StreamPlace {
 public:
  StreamPlace() : taken_(++count() <= max_streams) {}
  ~StreamPlace() { --count(); }
  StreamPlace(const StreamPlace&) = delete;
  StreamPlace& operator=(const StreamPlace&) = delete;
  [[nodiscard]] bool taken() const { return taken_; }

 private:
  static std::atomic<int>& count() {
    static std::atomic<int> streams{0};
    return streams;
  }
  bool taken_;
};

struct SessionStream {
  SessionStream(model::SessionKey session, std::int64_t known_version,
                std::chrono::steady_clock::time_point until, Reply answer)
      : key(std::move(session)), known(known_version), deadline(until), reply(std::move(answer)) {}

  const model::SessionKey key;
  const std::int64_t known;  // the version that the client has
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

// 0: there is no such session.
Result<std::int64_t> version_of_session(MessageServices& services, const model::SessionKey& key) {
  auto session = services.store.sessions().load(key);
  if (!session) return model::fail(store_error(session.error()));
  return *session ? (*session)->version : 0;
}

void send_version(SessionStream& stream, const Result<std::int64_t>& version) {
  if (!version) return stream.reply.fail(version.error());
  if (*version == stream.known) return send_event(stream.reply, ": nothing new\n");
  const std::string number = std::to_string(*version);
  send_event(stream.reply, "id: " + number + "\ndata: {\"version\":" + number + "}\n");
}

void wait_for_version(const StreamPtr& stream, MessageServices& services) {
  // Watches before it looks, so a commit in between is noticed.
  const auto ticket = services.watch.watch(
      outputs_name(stream->key), stream->deadline, [stream, &services](WatchEnd why) {
        if (why == WatchEnd::notified) return wait_for_version(stream, services);
        send_version(*stream, why == WatchEnd::stopped ? Result<std::int64_t>(stream->known)
                                                       : version_of_session(services, stream->key));
      });
  const auto version = version_of_session(services, stream->key);
  if (version && *version == stream->known) return;
  if (services.watch.cancel(ticket)) send_version(*stream, version);
}

// The version that the client knows: that of the last event, or of the query.
Result<std::int64_t> version_in(const Request& request) {
  const auto last = request.header("last-event-id");
  if (!last) return number_parameter(request, "version", 0, max_session_version, 0);
  const Request event{.query = {{"Last-Event-ID", std::string(*last)}}};
  return number_parameter(event, "Last-Event-ID", 0, max_session_version, 0);
}

void session_events(Call call, MessageServices& services, Reply reply) {
  auto token = required_parameter(call.request, "URLToken");
  if (!token) return reply.fail(token.error());
  auto key = session_of(services.assets, *call.principal, *token,
                        call.request.parameter("userId").value_or(""),
                        call.request.parameter("sessionId").value_or(""));
  if (!key) return reply.fail(key.error());
  const auto known = version_in(call.request);
  if (!known) return reply.fail(known.error());
  const auto version = version_of_session(services, *key);
  if (!version) return reply.fail(version.error());
  if (*version == 0) return reply.fail({Errc::not_found, "there is no such session"});
  const auto deadline = services.options.steady_now() + max_event_wait;
  auto stream =
      std::make_shared<SessionStream>(*std::move(key), *known, deadline, std::move(reply));
  if (!stream->place.taken()) {
    return stream->reply.fail({Errc::too_many, "too many streams are open; try again later"});
  }
  wait_for_version(stream, services);
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
          "Server-sent events. Each answer has at most one event, the session's version "
          "once it differs from the known one, and then ends. `EventSource` asks again by "
          "itself.",
      .parameters = {query_parameter("URLToken", "The Endpoint.", url_token(), Need::required),
                     name("userId", "The user."), name("sessionId", "The session."),
                     query_parameter("version", "The known version. Default: 0, which none has.",
                                     with_default(0, integer(0, max_session_version))),
                     header_parameter("Last-Event-ID",
                                      "The known version, before that of the query.",
                                      integer(0, max_session_version))},
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
