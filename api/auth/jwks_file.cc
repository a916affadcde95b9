#include "api/auth/jwks_file.h"

#include <sys/stat.h>

#include <fstream>
#include <utility>

namespace conversed::api {

using model::Errc;
using model::Result;

namespace {

constexpr std::size_t max_file_bytes = 256 * 1024;
constexpr std::string_view setting = "contact_center.jwks_file";

}  // namespace

Result<std::string> read_setting_file(const std::string& path, std::string_view named) {
  const auto refuse = [&](const char* why) {
    return model::fail(Errc::invalid_argument, std::string(named) + ": " + path + " " + why);
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse("can't be read");
  std::string text(max_file_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad() || text.empty()) return refuse("can't be read, or is empty");
  if (text.size() > max_file_bytes) return refuse("is too large");
  return text;
}

Result<std::unique_ptr<JwksFile>> JwksFile::open(std::string path, KeyFileListener listener) {
  std::unique_ptr<JwksFile> file(new JwksFile(std::move(path), std::move(listener)));
  // Before the read: should the file change in between, the next look finds another version.
  auto version = file->version();
  auto keys = file->read();
  if (!keys) return model::fail(keys.error());
  file->state_.with([&](State& state) {
    state.keys = *std::move(keys);
    state.version = version;
  });
  return file;
}

JwksFile::Keys JwksFile::keys(TimePoint now, std::chrono::milliseconds interval) {
  Keys known;
  std::optional<Version> before;
  const bool mine = state_.with([&](State& state) {
    known = state.keys;
    if (state.looking || (state.looked_at && now - *state.looked_at < interval)) return false;
    state.looking = true;
    state.looked_at = now;
    before = state.version;
    return true;
  });
  if (!mine) return known;
  auto found = version();
  if (found == before) {
    state_.with([](State& state) { state.looking = false; });
    return known;
  }
  take(found, read());
  return state_.with([](const State& state) { return state.keys; });
}

void JwksFile::take(std::optional<Version> version, Result<Keys> read) {
  const bool was_unusable = state_.with([&](State& state) {
    state.looking = false;
    state.version = version;
    if (read) state.keys = *read;
    return std::exchange(state.unusable, !read.has_value());
  });
  if (!listener_) return;
  if (read) {
    listener_(KeyFileNews::reloaded, std::string(setting) + ": " + path_ + " was read again");
  } else if (!was_unusable) {
    listener_(KeyFileNews::unusable, read.error().message + "; the keys read before stay in use");
  }
}

std::optional<JwksFile::Version> JwksFile::version() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return std::nullopt;
  return Version{static_cast<std::int64_t>(status.st_ino),
                 status.st_size,
                 status.st_mtim.tv_sec,
                 status.st_mtim.tv_nsec,
                 status.st_ctim.tv_sec,
                 status.st_ctim.tv_nsec};
}

Result<JwksFile::Keys> JwksFile::read() const {
  const auto text = read_setting_file(path_, setting);
  if (!text) return model::fail(text.error());
  auto keys = parse_jwks(*text);
  if (!keys) {
    return model::fail(Errc::invalid_argument,
                       std::string(setting) + ": " + path_ + ": " + keys.error().message);
  }
  return std::make_shared<const std::vector<JwtKey>>(*std::move(keys));
}

}  // namespace conversed::api
