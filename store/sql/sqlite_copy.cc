#include "store/sql/sqlite_copy.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>

#include "store/model/hex.h"

namespace conversed::store {
namespace {

using model::Errc;
using model::Result;

constexpr int steps_between_questions = 100'000;  // of SQLite's virtual machine
constexpr int pages_a_slice = 1'024;              // of 1 KiB, as the store's file has them

struct Close {
  void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
};
using Handle = std::unique_ptr<sqlite3, Close>;

// Null if it can't be opened. It never checkpoints, closing included: the writer of the file does.
Handle open(const std::string& path, int flags) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  Handle handle(opened);
  if (code != SQLITE_OK) return nullptr;
  sqlite3_db_config(opened, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  sqlite3_wal_autocheckpoint(opened, 0);
  sqlite3_busy_timeout(opened, 5'000);  // ms
  return handle;
}

Result<void> failed(const std::filesystem::path& file, std::string_view doing, int code) {
  return model::fail(Errc::unavailable, file.filename().string() + " could not be " +
                                            std::string(doing) + ": " + sqlite3_errstr(code));
}

// Makes the file with its final mode: SQLite keeps the mode of an existing file.
Result<void> make_file(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    const std::error_code why(errno, std::system_category());
    return model::fail(errno == EEXIST ? Errc::conflict : Errc::unavailable,
                       file.filename().string() + " can't be made: " + why.message());
  }
  ::close(descriptor);
  return {};
}

Result<void> copy(const std::filesystem::path& from, const std::filesystem::path& to,
                  const std::function<bool()>& go_on) {
  const Handle source = open(from.string(), SQLITE_OPEN_READONLY);
  if (!source) return failed(from, "opened", SQLITE_CANTOPEN);
  const Handle target = open(to.string(), SQLITE_OPEN_READWRITE);
  if (!target) return failed(to, "opened", SQLITE_CANTOPEN);
  // A transaction that has read holds its snapshot: without it, each write by others would begin
  // the copy anew.
  int code = sqlite3_exec(source.get(), "BEGIN; SELECT count(*) FROM sqlite_schema", nullptr,
                          nullptr, nullptr);
  if (code != SQLITE_OK) return failed(from, "read", code);
  const std::unique_ptr<sqlite3_backup, int (*)(sqlite3_backup*)> backup(
      sqlite3_backup_init(target.get(), "main", source.get(), "main"), sqlite3_backup_finish);
  if (!backup) return failed(to, "written", sqlite3_errcode(target.get()));
  do {
    if (!go_on()) {
      return model::fail(Errc::unavailable,
                         "the copy of " + from.filename().string() + " was ended");
    }
    code = sqlite3_backup_step(backup.get(), pages_a_slice);
  } while (code == SQLITE_OK);
  if (code != SQLITE_DONE) return failed(from, "copied", code);
  return {};
}

// The file's name as a URI, in which these characters mean something else.
std::string uri_of(const std::filesystem::path& file) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(file).string()) {
    const bool is_special = c == '%' || c == '?' || c == '#';
    const auto byte = static_cast<std::uint8_t>(c);
    uri += is_special ? '%' + model::hex({&byte, 1}) : std::string(1, c);
  }
  return uri;
}

}  // namespace

Result<void> copy_sqlite_file(const std::filesystem::path& from, const std::filesystem::path& to,
                              const std::function<bool()>& go_on) {
  if (auto made = make_file(to); !made) return made;
  auto copied = copy(from, to, go_on);
  if (!copied) {
    std::error_code ignored;
    std::filesystem::remove(to, ignored);
  }
  return copied;
}

Result<void> check_sqlite_file(const std::filesystem::path& file,
                               const std::function<bool()>& go_on, const std::stop_token& stop) {
  // Immutable: it is read as it lies there, without a lock and without files beside it.
  const Handle handle = open(uri_of(file) + "?immutable=1", SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
  if (!handle) return failed(file, "opened", SQLITE_CANTOPEN);
  // The callback ends a running check of the pages. The progress handler ends a check that has not
  // begun.
  const std::stop_callback interrupt(stop, [&] { sqlite3_interrupt(handle.get()); });
  std::function<bool()> goes_on = [&] { return !stop.stop_requested() && (!go_on || go_on()); };
  const auto ask = [](void* asked) {
    return (*static_cast<std::function<bool()>*>(asked))() ? 0 : 1;
  };
  sqlite3_progress_handler(handle.get(), steps_between_questions, ask, &goes_on);
  bool is_whole = false;
  const auto read_answer = [](void* whole, int, char** texts, char**) {
    *static_cast<bool*>(whole) = texts[0] != nullptr && std::string_view(texts[0]) == "ok";
    return 0;
  };
  const int code =
      sqlite3_exec(handle.get(), "PRAGMA quick_check(1)", read_answer, &is_whole, nullptr);
  if (stop.stop_requested()) {
    return model::fail(Errc::unavailable,
                       "the check of " + file.filename().string() + " was ended");
  }
  if (is_whole) return {};
  if (code == SQLITE_INTERRUPT) return failed(file, "checked", code);
  return model::fail(Errc::internal, file.filename().string() + " is damaged");
}

}  // namespace conversed::store
