#include "store/secrets/sealer.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>
#include <utility>
#include <vector>

#include "store/model/hex.h"
#include "store/model/ids.h"

namespace conversed::store {
namespace {

using model::Errc;
using model::fail;
using model::Result;

constexpr std::string_view format = "1.";

void ready() {
  if (sodium_init() < 0) std::abort();  // fails only without a random generator
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

// Makes the names in the file's folder durable.
bool sync_folder_of(const std::filesystem::path& path) {
  const File folder(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.get() >= 0 && ::fsync(folder.get()) == 0;
}

// Makes the file with mode 0600 and its name durable, or leaves no file behind.
Result<void> write_new(const std::filesystem::path& path, std::string_view text) {
  const File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0) {
    return errno == EEXIST ? Result<void>(fail(Errc::conflict, "the key file exists already"))
                           : fail(Errc::unavailable, "the key file can't be written");
  }
  const bool written =
      ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file.get()) == 0;
  if (!written || !sync_folder_of(path)) {
    ::unlink(path.c_str());
    return fail(Errc::unavailable, "the key file can't be written");
  }
  return {};
}

// In one step: a reader of the file sees the old text or the new one. Durable when it returns.
Result<void> replace(const std::filesystem::path& path, std::string_view text) {
  const auto fresh = path.string() + "." + model::new_id();
  if (auto written = write_new(fresh, text); !written) return written;
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    ::unlink(fresh.c_str());
    return fail(Errc::unavailable, "the key file can't be replaced");
  }
  if (sync_folder_of(path)) return {};
  return fail(Errc::unavailable, "the key file can't be made durable");
}

// Removes the temporary file of an interrupted `replace`. The file holds no key that a stored value
// needs and the key file lacks.
void remove_leftovers(const std::filesystem::path& path) {
  const auto beginning = path.filename().string() + ".";
  const auto is_leftover = [&](const std::string& name) {
    return name.starts_with(beginning) && model::is_id(name.substr(beginning.size()));
  };
  std::error_code ignored;
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(path.parent_path(), ignored)) {
    if (is_leftover(entry.path().filename().string())) left.push_back(entry.path());
  }
  for (const auto& file : left) std::filesystem::remove(file, ignored);
}

using KeyBytes = std::array<unsigned char, crypto_aead_xchacha20poly1305_ietf_KEYBYTES>;

KeyBytes new_key() {
  KeyBytes key{};
  randombytes_buf(key.data(), key.size());
  return key;
}

// Text that holds keys, wiped when it goes.
class KeyText {
 public:
  KeyText() { text_.reserve(max_bytes); }
  ~KeyText() { sodium_memzero(text_.data(), text_.size()); }
  KeyText(const KeyText&) = delete;
  KeyText& operator=(const KeyText&) = delete;

  // False without room for the key. The text must not grow, because growing leaves a copy of its
  // bytes in memory.
  [[nodiscard]] bool add(std::uint32_t id, const KeyBytes& key) {
    std::array<char, 2 * std::tuple_size_v<KeyBytes> + 1> hex{};
    sodium_bin2hex(hex.data(), hex.size(), key.data(), key.size());
    const auto number = std::to_string(id);
    const bool fits = text_.size() + number.size() + hex.size() + 1 <= max_bytes;
    if (fits) text_.append(number).append(1, ' ').append(hex.data()).append(1, '\n');
    sodium_memzero(hex.data(), hex.size());
    return fits;
  }
  [[nodiscard]] std::string_view get() const { return text_; }

 private:
  static constexpr std::size_t max_bytes = 64 * 1024;
  std::string text_;
};

Result<std::string> read_private(const std::filesystem::path& path, KeyFile keeper) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    return errno == ENOENT
               ? fail(Errc::not_found, "there is no key file " + path.string())
               : fail(Errc::unavailable, "the key file " + path.string() + " can't be read");
  }
  struct stat status {};
  const bool seen = ::fstat(file.get(), &status) == 0;
  if (keeper == KeyFile::own && (status.st_mode & 077) != 0) {
    return fail(Errc::permission_denied, "others than the owner may use the key file " +
                                             path.string() + ": its mode must be 0600");
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  if (!seen || ::read(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return fail(Errc::unavailable, "the key file " + path.string() + " can't be read");
  }
  return text;
}

// Keeps replaced keys in a new file beside the key file. After a restore, another key may have had
// the same number: then a further number follows.
Result<std::filesystem::path> keep(const std::filesystem::path& path, std::uint32_t id,
                                   std::string_view text) {
  const std::string first = path.string() + '.' + std::to_string(id);
  std::string name = first;
  for (int n = 2;; ++n) {
    auto written = write_new(name, text);
    if (written) return name;
    if (written.error().code != Errc::conflict) return fail(written.error());
    auto present = read_private(name, KeyFile::own);
    const bool is_kept = present && *present == text;  // by a rotation that was cut short
    if (present) sodium_memzero(present->data(), present->size());
    if (is_kept) return name;
    name = first + '.' + std::to_string(n);
  }
}

// "1.<key id>.": what a sealed value begins with. Together with the place it is the associated
// data, which binds the value to both: elsewhere it does not open.
std::string beginning_of(std::uint32_t id) {
  return std::string(format) + std::to_string(id) + '.';
}

}  // namespace

Result<void> Sealer::create_key_file(const std::filesystem::path& file) {
  ready();
  KeyText text;
  auto key = new_key();
  (void)text.add(1, key);  // the first one fits
  sodium_memzero(key.data(), key.size());
  return write_new(file, text.get());
}

Result<Sealer> Sealer::open(const std::filesystem::path& file, KeyFile keeper) {
  ready();
  auto text = read_private(file, keeper);
  if (!text) return fail(text.error());
  if (keeper == KeyFile::own) remove_leftovers(file);
  Keys keys;
  std::istringstream lines(*text);
  std::uint32_t id = 0;
  std::string hex;
  bool whole = true;
  while (whole && lines >> id >> hex) {
    Key& key = keys.by_id[id];
    std::size_t size = 0;
    whole = sodium_hex2bin(key.data(), key.size(), hex.data(), hex.size(), nullptr, &size,
                           nullptr) == 0 &&
            size == key.size();
  }
  whole = whole && lines.eof() && !keys.by_id.empty();
  sodium_memzero(text->data(), text->size());
  sodium_memzero(hex.data(), hex.size());
  keys.in_file = keys.by_id.size();
  Sealer sealer(file, keeper, std::move(keys));  // owns the keys, and wipes them after an error
  if (!whole) {
    return fail(Errc::invalid_argument, "the key file " + file.string() +
                                            " is damaged: it has to hold lines of a number and 64 "
                                            "hex digits");
  }
  return sealer;
}

Sealer::Sealer(std::filesystem::path file, KeyFile keeper, Keys keys)
    : file_(std::move(file)),
      keeper_(keeper),
      keys_(std::make_unique<model::Guarded<Keys>>(std::move(keys))) {}

bool Sealer::has_keys_of(const Sealer& other) const {
  const Keys theirs = other.keys_->with([](const Keys& keys) { return keys; });
  return keys_->with([&](const Keys& keys) {
    return std::ranges::all_of(theirs.by_id, [&](const auto& entry) {
      const auto own = keys.by_id.find(entry.first);
      return own != keys.by_id.end() &&
             sodium_memcmp(own->second.data(), entry.second.data(), entry.second.size()) == 0;
    });
  });
}

Sealer::~Sealer() {
  if (!keys_) return;
  keys_->with([](Keys& keys) {
    for (auto& [id, key] : keys.by_id) sodium_memzero(key.data(), key.size());
  });
}

Result<void> Sealer::add_key() {
  if (keeper_ == KeyFile::handed_over) {
    return fail(Errc::not_supported,
                "the master key is a credential, which the daemon only reads: add a line with the "
                "next number and 64 random hex digits to it and restart the daemon, which then "
                "seals everything anew");
  }
  // Holds the lock while the file is written, so that no two keys get one number. `seal` waits for
  // one fsync meanwhile.
  return keys_->with([&](Keys& keys) -> Result<void> {
    KeyText text;
    for (auto key = std::prev(keys.by_id.end(), static_cast<std::ptrdiff_t>(keys.in_file));
         key != keys.by_id.end(); ++key) {
      if (!text.add(key->first, key->second)) break;
    }
    const std::uint32_t id = keys.by_id.rbegin()->first + 1;
    auto key = new_key();
    const bool fits = text.add(id, key);
    auto written = fits ? replace(file_, text.get())
                        : Result<void>(fail(Errc::conflict, "the key file holds too many keys"));
    if (written) {
      keys.by_id[id] = key;
      ++keys.in_file;
    }
    sodium_memzero(key.data(), key.size());
    return written;
  });
}

Result<std::filesystem::path> Sealer::drop_old_keys() {
  if (keeper_ == KeyFile::handed_over) return {};
  return keys_->with([&](Keys& keys) -> Result<std::filesystem::path> {
    if (keys.in_file == 1) return {};
    const auto newest = std::prev(keys.by_id.end());
    KeyText old;  // as long as in the key file
    for (auto key = std::prev(keys.by_id.end(), static_cast<std::ptrdiff_t>(keys.in_file));
         key != newest; ++key) {
      (void)old.add(key->first, key->second);
    }
    auto kept = keep(file_, std::prev(newest)->first, old.get());
    if (!kept) return kept;
    KeyText text;
    (void)text.add(newest->first, newest->second);
    if (auto written = replace(file_, text.get()); !written) return fail(written.error());
    keys.in_file = 1;
    return kept;
  });
}

std::uint32_t Sealer::newest() const {
  return keys_->with([](const Keys& keys) { return keys.by_id.rbegin()->first; });
}

std::size_t Sealer::keys_in_file() const {
  return keys_->with([](const Keys& keys) { return keys.in_file; });
}

std::int64_t Sealer::fingerprint_of(const Key& key) {
  std::int64_t hash = 0;
  // The library's shortest hash has 16 bytes, of which the first 8 are enough.
  std::array<unsigned char, crypto_generichash_BYTES_MIN> bytes{};
  crypto_generichash(bytes.data(), bytes.size(), key.data(), key.size(), nullptr, 0);
  std::memcpy(&hash, bytes.data(), sizeof(hash));
  return hash;
}

std::string Sealer::keyed_hash(std::string_view purpose, std::string_view value) const {
  std::string message(purpose);
  message += '\0';
  message += value;
  std::array<unsigned char, crypto_generichash_BYTES> hash{};
  keys_->with([&](const Keys& keys) {
    const Key& key = keys.by_id.rbegin()->second;
    crypto_generichash(hash.data(), hash.size(), model::bytes_of(message), message.size(),
                       key.data(), key.size());
  });
  return model::hex(hash);
}

std::int64_t Sealer::fingerprint() const {
  return keys_->with([](const Keys& keys) { return fingerprint_of(keys.by_id.rbegin()->second); });
}

bool Sealer::has_key(std::int64_t fingerprint) const {
  return keys_->with([&](const Keys& keys) {
    return std::ranges::any_of(
        keys.by_id, [&](const auto& entry) { return fingerprint_of(entry.second) == fingerprint; });
  });
}

bool Sealer::is_current(std::string_view sealed) const {
  return sealed.starts_with(beginning_of(newest()));
}

std::string Sealer::seal(std::string_view place, std::string_view value) const {
  constexpr std::size_t nonce_size = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
  auto [id, key] = keys_->with([](const Keys& keys) { return *keys.by_id.rbegin(); });
  std::vector<unsigned char> box(nonce_size + value.size() +
                                 crypto_aead_xchacha20poly1305_ietf_ABYTES);
  randombytes_buf(box.data(), nonce_size);
  const std::string data = beginning_of(id).append(place);
  unsigned long long size = 0;
  crypto_aead_xchacha20poly1305_ietf_encrypt(box.data() + nonce_size, &size, model::bytes_of(value),
                                             value.size(), model::bytes_of(data), data.size(),
                                             nullptr, box.data(), key.data());
  sodium_memzero(key.data(), key.size());
  constexpr int variant = sodium_base64_VARIANT_ORIGINAL_NO_PADDING;
  std::string encoded(sodium_base64_encoded_len(box.size(), variant), '\0');
  sodium_bin2base64(encoded.data(), encoded.size(), box.data(), box.size(), variant);
  encoded.pop_back();  // the terminating NUL is counted
  return beginning_of(id) + encoded;
}

Result<std::string> Sealer::open_sealed(std::string_view place, std::string_view sealed) const {
  constexpr std::size_t nonce_size = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
  const auto damaged = [] { return fail(Errc::internal, "a sealed value can't be opened"); };
  if (!sealed.starts_with(format)) return damaged();
  sealed.remove_prefix(format.size());
  std::uint32_t id = 0;
  const auto [end, problem] = std::from_chars(sealed.data(), sealed.data() + sealed.size(), id);
  if (problem != std::errc() || end == sealed.data() + sealed.size() || *end != '.') {
    return damaged();
  }
  sealed.remove_prefix(static_cast<std::size_t>(end + 1 - sealed.data()));
  if (sealed.empty()) return damaged();

  std::vector<unsigned char> box(sealed.size());
  std::size_t size = 0;
  if (sodium_base642bin(box.data(), box.size(), sealed.data(), sealed.size(), nullptr, &size,
                        nullptr, sodium_base64_VARIANT_ORIGINAL_NO_PADDING) != 0 ||
      size < nonce_size + crypto_aead_xchacha20poly1305_ietf_ABYTES) {
    return damaged();
  }
  std::string value(size - nonce_size - crypto_aead_xchacha20poly1305_ietf_ABYTES, '\0');
  const std::string data = beginning_of(id).append(place);
  unsigned long long length = 0;
  const bool opened = keys_->with([&](const Keys& keys) {
    const auto key = keys.by_id.find(id);
    return key != keys.by_id.end() &&
           crypto_aead_xchacha20poly1305_ietf_decrypt(
               reinterpret_cast<unsigned char*>(value.data()), &length, nullptr,
               box.data() + nonce_size, size - nonce_size, model::bytes_of(data), data.size(),
               box.data(), key->second.data()) == 0;
  });
  if (!opened) return damaged();
  return value;
}

}  // namespace conversed::store
