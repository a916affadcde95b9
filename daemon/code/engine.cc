#include "daemon/code/engine.h"

#include <js/CallAndConstruct.h>
#include <js/CharacterEncoding.h>
#include <js/CompilationAndEvaluation.h>
#include <js/ContextOptions.h>
#include <js/ErrorReport.h>
#include <js/Exception.h>
#include <js/GCAPI.h>
#include <js/HelperThreadAPI.h>
#include <js/Initialization.h>
#include <js/JSON.h>
#include <js/Promise.h>
#include <js/SourceText.h>
#include <js/StableStringChars.h>
#include <jsapi.h>
#include <jsfriendapi.h>

#include <algorithm>
#include <array>
#include <optional>

namespace conversed::daemon {
namespace {

constexpr std::uint32_t heap_bytes = 32U << 20;
constexpr std::size_t stack_bytes = std::size_t{512} << 10;
constexpr std::array<const char*, 4> parameters{"input", "context", "profile", "values"};
// The engine puts a line before the body of a function.
constexpr unsigned lines_before_body = 1;
// Uses parts of the engine that make tables at their first use, or read files such as those of time
// zones. Later processes then share the tables, and need no files.
constexpr std::string_view warm_up = R"(
  const now = new Date();
  return [now.toString(), now.toLocaleString("en"), now.getHours(), (1.5).toLocaleString("en"),
          ["b", "a"].sort((a, b) => a.localeCompare(b)), /(\d+)-\p{L}/u.exec("12-a"),
          JSON.stringify({a: [new Map([[1, 2]]), new Set([1])]}), "a".normalize("NFD"),
          `${Math.random()}`, Object.entries({a: 1}).map(([k, v]) => k + v)];)";

// Helper threads never run: the engine does their work itself when it waits for it.
void no_threads(JS::DispatchReason) {}

const JSClass global_class{
    "global", JSCLASS_GLOBAL_FLAGS, &JS::DefaultGlobalClassOps, nullptr, nullptr, nullptr};

std::string utf8(std::u16string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::uint32_t point = text[i];
    const bool is_pair = point >= 0xD800 && point < 0xDC00 && i + 1 < text.size() &&
                         text[i + 1] >= 0xDC00 && text[i + 1] < 0xE000;
    if (is_pair) {
      point = 0x10000 + ((point - 0xD800) << 10) + (static_cast<std::uint32_t>(text[++i]) - 0xDC00);
    } else if (point >= 0xD800 && point < 0xE000) {
      point = 0xFFFD;
    }
    const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
    const auto follow = [&](unsigned shift) { put(0x80 | ((point >> shift) & 0x3F)); };
    if (point < 0x80) {
      put(point);
    } else if (point < 0x800) {
      put(0xC0 | (point >> 6));
      follow(0);
    } else if (point < 0x10000) {
      put(0xE0 | (point >> 12));
      follow(6);
      follow(0);
    } else {
      put(0xF0 | (point >> 18));
      follow(12);
      follow(6);
      follow(0);
    }
  }
  return out;
}

// The text of a result while the engine writes it.
struct Written {
  std::u16string text;
  std::size_t most = 0;  // UTF-8 takes at least one byte for each unit
  bool is_full = false;
};

bool write(const char16_t* text, std::uint32_t count, void* to) {
  auto& written = *static_cast<Written*>(to);
  if (written.text.size() + count > written.most) {
    written.is_full = true;
    return false;
  }
  written.text.append(text, count);
  return true;
}

}  // namespace

struct Engine::Runtime {
  explicit Runtime(JSContext* context) : cx(context) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  [[nodiscard]] bool open();
  [[nodiscard]] bool arguments(std::string_view values, JS::MutableHandleValueVector into) const;
  [[nodiscard]] bool call(std::string_view script, std::string_view values,
                          JS::MutableHandleValue result) const;
  [[nodiscard]] bool settle(JS::MutableHandleValue result) const;
  [[nodiscard]] std::string error() const;

  JSContext* const cx;
  std::optional<JS::PersistentRootedObject> global;
  std::optional<JSAutoRealm> realm;
  void (*give_up)() = nullptr;
};

bool Engine::Runtime::open() {
  JS::ContextOptionsRef(cx).setAsmJS(false).setWasm(false);
  JS_SetNativeStackQuota(cx, stack_bytes);
  if (!js::UseInternalJobQueues(cx) || !JS::InitSelfHostedCode(cx)) return false;
  JS::RealmOptions options;
  options.creationOptions().setSharedMemoryAndAtomicsEnabled(false);
  global.emplace(cx,
                 JS_NewGlobalObject(cx, &global_class, nullptr, JS::FireOnNewGlobalHook, options));
  if (!*global) return false;
  realm.emplace(cx, *global);
  return true;
}

// The members of the values, frozen, so that a script that changes one fails instead of losing its
// change.
bool Engine::Runtime::arguments(std::string_view values, JS::MutableHandleValueVector into) const {
  const JS::UTF8Chars chars(values.data(), values.size());
  JS::RootedString text(cx, JS_NewStringCopyUTF8N(cx, chars));
  JS::RootedValue parsed(cx);
  if (!text || !JS_ParseJSON(cx, text, &parsed) || !parsed.isObject()) return false;
  JS::RootedObject object(cx, &parsed.toObject());
  for (const char* name : parameters) {
    JS::RootedValue value(cx);
    if (!JS_GetProperty(cx, object, name, &value)) return false;
    if (value.isObject()) {
      JS::RootedObject part(cx, &value.toObject());
      if (!JS_DeepFreezeObject(cx, part)) return false;
    }
    if (!into.append(value)) return false;
  }
  return true;
}

bool Engine::Runtime::call(std::string_view script, std::string_view values,
                           JS::MutableHandleValue result) const {
  JS::CompileOptions options(cx);
  options.setFileAndLine("script", 1).setForceStrictMode();
  // In UTF-16: the body of a function in UTF-8 would be read as Latin-1.
  JS::RootedString text(cx, JS_NewStringCopyUTF8N(cx, {script.data(), script.size()}));
  JS::AutoStableStringChars chars(cx);
  JS::SourceText<char16_t> source;
  if (!text || !chars.initTwoByte(cx, text) ||
      !source.init(cx, chars.twoByteChars(), JS_GetStringLength(text),
                   JS::SourceOwnership::Borrowed)) {
    return false;
  }
  const JS::RootedObjectVector scopes(cx);
  JS::RootedFunction function(
      cx, JS::CompileFunction(cx, scopes, options, "script", parameters.size(), parameters.data(),
                              source));
  JS::RootedValueVector given(cx);
  return function && arguments(values, &given) &&
         JS_CallFunction(cx, *global, function, given, result) && settle(result);
}

// Runs the jobs that the script left. The result of a promise is its value.
bool Engine::Runtime::settle(JS::MutableHandleValue result) const {
  js::RunJobs(cx);
  if (!result.isObject()) return true;
  JS::RootedObject promise(cx, &result.toObject());
  if (!JS::IsPromiseObject(promise)) return true;
  switch (JS::GetPromiseState(promise)) {
    case JS::PromiseState::Pending:
      JS_ReportErrorUTF8(cx, "the script returns a promise that nothing fulfills");
      return false;
    case JS::PromiseState::Rejected:
      result.set(JS::GetPromiseResult(promise));
      JS_SetPendingException(cx, result);
      return false;
    case JS::PromiseState::Fulfilled:
      result.set(JS::GetPromiseResult(promise));
      return true;
  }
  return true;
}

// Takes the pending exception.
std::string Engine::Runtime::error() const {
  std::string message = "the script ended without a reason";
  JS::ExceptionStack stack(cx);
  JS::ErrorReportBuilder report(cx);
  if (JS::StealPendingExceptionStack(cx, &stack) &&
      report.init(cx, stack, JS::ErrorReportBuilder::NoSideEffects)) {
    message = report.toStringResult().c_str();
    if (const auto line = report.report()->lineno; line > lines_before_body) {
      message = "line " + std::to_string(line - lines_before_body) + ": " + message;
    }
  }
  if (message.size() > max_error_bytes) message.resize(max_error_bytes);
  return message;
}

Engine::Engine(std::unique_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
Engine::~Engine() = default;

Engine* Engine::start() {
  JS::DisableJitBackend();
  if (!JS_Init()) return nullptr;
  JS::SetHelperThreadTaskCallback(no_threads, 1, stack_bytes);
  JSContext* cx = JS_NewContext(heap_bytes);
  if (cx == nullptr) return nullptr;
  auto runtime = std::make_unique<Runtime>(cx);
  if (!runtime->open()) return nullptr;
  JS::RootedValue ignored(cx);
  if (!runtime->call(warm_up, "{}", &ignored)) return nullptr;
  return new Engine(std::move(runtime));
}

Engine::Reply Engine::run(std::string_view script, std::string_view values,
                          std::size_t most_bytes) {
  JSContext* cx = runtime_->cx;
  JS::RootedValue result(cx);
  if (!runtime_->call(script, values, &result)) return {ReplyKind::failed, runtime_->error()};
  Written written{.text = {}, .most = most_bytes};
  if (!JS_Stringify(cx, &result, nullptr, JS::NullHandleValue, write, &written)) {
    if (written.is_full) return {ReplyKind::too_large, {}};
    return {ReplyKind::failed, runtime_->error()};
  }
  Reply reply{ReplyKind::value, utf8(written.text)};
  if (reply.text.size() > most_bytes) return {ReplyKind::too_large, {}};
  return reply;
}

void Engine::on_out_of_memory(void (*give_up)()) {
  runtime_->give_up = give_up;
  JS::SetOutOfMemoryCallback(
      runtime_->cx, [](JSContext*, void* data) { static_cast<const Runtime*>(data)->give_up(); },
      runtime_.get());
}

}  // namespace conversed::daemon
