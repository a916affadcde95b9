#include "daemon/data/backup.h"

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "daemon/ops/version.h"
#include "queue/file/recovery.h"
#include "store/model/hex.h"
#include "store/sql/database.h"
#include "store/sql/sqlite_copy.h"
#include "store/text/ascii.h"
#include "store/text/times.h"

namespace conversed::daemon {

namespace fs = std::filesystem;
using model::Errc;
using model::fail;
using model::Result;
using nlohmann::json;

namespace {

constexpr std::int64_t format = 1;
constexpr std::string_view unfinished = ".partial";
constexpr std::size_t max_name = 100;

model::Error error_of(const fs::path& file, const std::string& doing, int code) {
  return {Errc::unavailable, file.string() + " can't be " + doing + ": " +
                                 std::error_code(code, std::system_category()).message()};
}

// The size and digest of a file. `take` gets its bytes piece by piece; false ends the reading.
Result<BackupManifest::File> digest(const fs::path& file,
                                    const std::function<bool(std::string_view)>& take) {
  std::ifstream in(file, std::ios::binary);
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  BackupManifest::File seen;
  std::vector<char> buffer(std::size_t{1} << 20);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto count = static_cast<std::size_t>(in.gcount());
    crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(buffer.data()), count);
    seen.bytes += in.gcount();
    if (!take({buffer.data(), count})) return fail(error_of(file, "read", ECANCELED));
  }
  if (!in.eof()) return fail(error_of(file, "read", errno));
  std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
  crypto_hash_sha256_final(&state, hash.data());
  seen.sha256 = model::hex(hash);
  return seen;
}

bool is_backup_name(std::string_view name) {
  return !name.empty() && name.size() <= max_name && name.front() != '.' &&
         !name.ends_with(unfinished) && text::consists_of(name, ".-_");
}

std::string name_of(model::Timestamp time) {
  return text::utc_time(std::chrono::floor<std::chrono::seconds>(time), "%Y%m%dT%H%M%SZ");
}

std::string text_of(const BackupManifest& manifest) {
  json files = json::object();
  for (const auto& [name, file] : manifest.files) {
    files[name] = {{"bytes", file.bytes}, {"sha256", file.sha256}};
  }
  json document{
      {"format", format},          {"program", manifest.program},
      {"schema", manifest.schema}, {"reason", manifest.reason},
      {"log", manifest.log},       {"createdAt", model::to_unix_ms(manifest.created_at) / 1000},
      {"files", std::move(files)}};
  if (!manifest.committed.empty()) document["committed"] = manifest.committed;
  return document.dump(2) + "\n";
}

// Makes an empty file that only its owner may use. `conflict` if the file exists.
Result<void> create_private(const fs::path& file) {
  const int made = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (made < 0) {
    auto failed = error_of(file, "made", errno);
    if (errno == EEXIST) failed.code = Errc::conflict;
    return fail(std::move(failed));
  }
  ::close(made);
  return {};
}

Result<void> write_manifest(const fs::path& folder, const BackupManifest& manifest) {
  const fs::path file = folder / "backup.json";
  if (auto made = create_private(file); !made) return made;
  std::ofstream out(file, std::ios::binary);
  if (!(out << text_of(manifest)).flush()) return fail(error_of(file, "written", errno));
  if (auto durable = make_durable(file); !durable) return durable;
  return make_durable(folder);
}

// Removes the folder's backups whose names `is_old` accepts.
void remove_backups(const fs::path& folder, const std::function<bool(const std::string&)>& is_old) {
  std::error_code ignored;
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (is_old(entry.path().filename().string())) old.push_back(entry.path());
  }
  for (const auto& path : old) fs::remove_all(path, ignored);
}

// While it exists, the log deletes no finished records.
class HeldPruning {
 public:
  explicit HeldPruning(queue::FileLog* log) : log_(log) {
    if (log_ != nullptr) log_->set_pruning(queue::Pruning::held);
  }
  ~HeldPruning() {
    if (log_ != nullptr) log_->set_pruning(queue::Pruning::on);
  }
  HeldPruning(const HeldPruning&) = delete;
  HeldPruning& operator=(const HeldPruning&) = delete;

 private:
  queue::FileLog* log_;
};

}  // namespace

std::int64_t BackupManifest::bytes() const {
  std::int64_t sum = 0;
  for (const auto& [name, file] : files) sum += file.bytes;
  return sum;
}

Result<BackupManifest> BackupManifest::read(const fs::path& backup) {
  const auto no_backup = [&](const std::string& why) {
    return fail(Errc::invalid_argument, backup.string() + " is not a backup: " + why);
  };
  std::ifstream file(backup / "backup.json", std::ios::binary);
  if (!file) return no_backup("backup.json is not in it");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  try {
    const auto document = json::parse(text);
    const auto of_file = document.at("format").get<std::int64_t>();
    if (of_file != format) {
      return no_backup("its format is " + std::to_string(of_file) + ", and this program knows " +
                       std::to_string(format));
    }
    BackupManifest manifest{
        .program = document.at("program"),
        .schema = document.at("schema"),
        .reason = document.at("reason"),
        .log = document.at("log"),
        .created_at = model::from_unix_ms(document.at("createdAt").get<std::int64_t>() * 1000),
        .committed = document.value("committed", std::vector<std::int64_t>())};
    for (const auto& [name, value] : document.at("files").items()) {
      manifest.files[name] = {value.at("bytes"), value.at("sha256")};
    }
    if (!manifest.files.contains("store.db")) return no_backup("it holds no store");
    return manifest;
  } catch (const json::exception&) {
    return no_backup("backup.json is damaged");
  }
}

BackupMaker::BackupMaker(const config::Settings& settings, const model::Clock& clock,
                         queue::FileLog* log, std::function<bool()> go_on)
    : data_dir_(settings.data_dir),
      folder_(settings.backup.dir.empty() ? settings.data_dir / "backups" : settings.backup.dir),
      log_is_embedded_(settings.queue.driver == config::QueueDriver::embedded),
      store_is_a_file_(settings.store.driver == config::StoreDriver::sqlite),
      clock_(clock),
      log_(log),
      go_on_(std::move(go_on)) {}

Result<MadeBackup> BackupMaker::make(const std::string& name) {
  if (!store_is_a_file_) {
    return fail(Errc::not_supported,
                "the store is in PostgreSQL: back it up with pg_dump or the server's own tools, "
                "together with master.key, while all daemons are stopped");
  }
  if (!log_is_embedded_) {
    return fail(Errc::not_supported,
                "the log is in Kafka, which can't be copied at the store's moment: events that "
                "the store has not seen might be lost. Stop all daemons and back up with the tools "
                "of your disks");
  }
  if (!name.empty() && !is_backup_name(name)) {
    return fail(Errc::invalid_argument,
                "a backup's name has 1 to 100 letters, digits, dots, hyphens and underscores, and "
                "does not begin with a dot");
  }
  return make(name, manifest_of("asked", store::schema_version));
}

// A second backup of the same second gets a number.
std::string BackupMaker::free_name() const {
  const auto by_time = name_of(clock_.now());
  auto name = by_time;
  std::error_code ignored;
  for (int number = 2; fs::exists(folder_ / name, ignored); ++number) {
    name = by_time + '-' + std::to_string(number);
  }
  return name;
}

BackupManifest BackupMaker::manifest_of(const char* reason, std::int64_t schema) const {
  return {.program = version,
          .schema = schema,
          .reason = reason,
          .log = log_is_embedded_ ? "embedded" : "kafka",
          .created_at = clock_.now()};
}

Result<MadeBackup> BackupMaker::make_before_migration(std::int64_t schema) {
  constexpr std::string_view beginning = "before-migration-";
  const std::string ending = "-schema" + std::to_string(schema);
  const auto name = std::string(beginning) + name_of(clock_.now()) + ending;
  // An earlier try within this second has made it.
  if (auto made = BackupManifest::read(folder_ / name); made) {
    return MadeBackup{folder_ / name, *std::move(made)};
  }
  auto made = make(name, manifest_of("migration", schema));
  if (!made) return made;
  remove_backups(folder_, [&](const std::string& other) {
    return other != name && other.starts_with(beginning) && other.ends_with(ending);
  });
  return made;
}

Result<MadeBackup> BackupMaker::make(const std::string& asked, BackupManifest manifest) {
  const std::unique_lock making(making_, std::try_to_lock);
  if (!making)
    return fail(Errc::conflict, "another backup is being made; try again when it has ended");
  std::error_code error;
  fs::create_directories(folder_, error);
  const auto name = asked.empty() ? free_name() : asked;
  const fs::path whole = folder_ / name;
  if (fs::exists(whole, error))
    return fail(Errc::conflict, "there is a backup " + name + " already; give another name");
  // A crash left these behind.
  remove_backups(folder_, [](const std::string& other) { return other.ends_with(unfinished); });
  const fs::path partial = folder_ / (name + std::string(unfinished));
  fs::create_directory(partial, error);
  if (error) return fail(error_of(folder_, "written to", error.value()));
  fs::permissions(partial, fs::perms::owner_all, error);

  const auto fill = [&]() -> Result<void> {
    if (auto copied = copy_files(partial, manifest); !copied) return copied;
    for (const auto& entry : fs::recursive_directory_iterator(partial, error)) {
      if (!entry.is_regular_file()) continue;
      auto file = digest(entry.path(), [this](auto) { return goes_on(); });
      if (!file) return fail(file.error());
      manifest.files[entry.path().lexically_relative(partial).string()] = *std::move(file);
    }
    if (auto written = write_manifest(partial, manifest); !written) return written;
    fs::rename(partial, whole, error);
    if (error) return fail(error_of(whole, "written", error.value()));
    return make_durable(folder_);
  };
  if (auto filled = fill(); !filled) {
    fs::remove_all(partial, error);
    return fail(filled.error());
  }
  return MadeBackup{whole, std::move(manifest)};
}

// Copies the store first. The effects of a record that was finished before are in the store's copy.
// A record that is finished afterwards is still in the log's copy.
Result<void> BackupMaker::copy_files(const fs::path& into, BackupManifest& manifest) {
  const HeldPruning held(log_);
  if (log_ != nullptr) {
    const auto ranges = log_->ranges();
    if (!ranges) return fail(ranges.error());
    for (const auto& range : *ranges) manifest.committed.push_back(range.committed);
  }
  const auto go_on = [this] { return goes_on(); };
  auto copied = store::copy_sqlite_file(data_dir_ / "store.db", into / "store.db", go_on);
  if (copied) copied = store::check_sqlite_file(into / "store.db", go_on, stop_.get_token());
  std::error_code ignored;
  if (!copied || !log_is_embedded_ || !fs::exists(data_dir_ / "log", ignored)) return copied;
  copied = log_ != nullptr ? log_->copy(into / "log", go_on)
                           : queue::copy_log(data_dir_ / "log", into / "log", go_on);
  return copied ? queue::check_log(into / "log") : copied;
}

Result<BackupManifest::File> copy_private(const fs::path& from, const fs::path& to) {
  if (auto made = create_private(to); !made) return fail(made.error());
  std::ofstream out(to, std::ios::binary);
  auto copied = digest(from, [&](std::string_view bytes) { return bool(out << bytes); });
  if (!out.flush()) copied = fail(error_of(to, "written", errno));
  if (copied) {
    if (auto durable = make_durable(to); !durable) copied = fail(durable.error());
  }
  std::error_code ignored;
  if (!copied) fs::remove(to, ignored);
  return copied;
}

Result<void> make_durable(const fs::path& path) {
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool durable = opened >= 0 && ::fsync(opened) == 0;
  const int error = errno;
  if (opened >= 0) ::close(opened);
  return durable ? Result<void>() : fail(error_of(path, "made durable", error));
}

}  // namespace conversed::daemon
