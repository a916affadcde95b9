#include "store/sealer.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <vector>

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
  const File folder(::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!written || folder.get() < 0 || ::fsync(folder.get()) != 0) {
    ::unlink(path.c_str());
    return fail(Errc::unavailable, "the key file can't be written");
  }
  return {};
}

std::string line_of(std::uint32_t id) {
  return std::to_string(id) + ' ' + model::random_hex(crypto_aead_xchacha20poly1305_ietf_KEYBYTES) +
         '\n';
}

Result<std::string> read_private(const std::filesystem::path& path) {
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    return errno == ENOENT ? fail(Errc::not_found, "there is no key file " + path.string())
                           : fail(Errc::unavailable, "the key file can't be read");
  }
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    return fail(Errc::unavailable, "the key file can't be read");
  }
  if ((status.st_mode & 077) != 0) {
    return fail(Errc::permission_denied, "others than the owner may use the key file " +
                                             path.string() + ": its mode must be 0600");
  }
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  if (::read(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return fail(Errc::unavailable, "the key file can't be read");
  }
  return text;
}

// What a value is bound to: moved elsewhere, or under another key id, it does not open.
std::string associated_data(std::uint32_t id, std::string_view place) {
  std::string data(format);
  data += std::to_string(id);
  data += '.';
  data += place;
  return data;
}

const unsigned char* bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::int64_t Sealer::fingerprint() const {
  const Key& oldest = keys_.begin()->second;
  std::int64_t hash = 0;
  // No less than 16 bytes are offered; the first 8 do.
  std::array<unsigned char, crypto_generichash_BYTES_MIN> bytes{};
  crypto_generichash(bytes.data(), bytes.size(), oldest.data(), oldest.size(), nullptr, 0);
  std::memcpy(&hash, bytes.data(), sizeof(hash));
  return hash;
}

Result<void> Sealer::create_key_file(const std::filesystem::path& file) {
  ready();
  return write_new(file, line_of(1));
}

Result<void> Sealer::add_key(const std::filesystem::path& file) {
  auto current = open(file);
  if (!current) return fail(current.error());
  auto text = read_private(file);
  if (!text) return fail(text.error());
  const auto fresh = file.string() + "." + model::new_id();
  auto written = write_new(fresh, *text + line_of(current->keys_.rbegin()->first + 1));
  sodium_memzero(text->data(), text->size());
  if (!written) return written;
  if (::rename(fresh.c_str(), file.c_str()) != 0) {
    ::unlink(fresh.c_str());
    return fail(Errc::unavailable, "the key file can't be replaced");
  }
  const File folder(::open(file.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || ::fsync(folder.get()) != 0) {
    return fail(Errc::unavailable, "the key file can't be made durable");
  }
  return {};
}

Result<Sealer> Sealer::open(const std::filesystem::path& file) {
  ready();
  auto text = read_private(file);
  if (!text) return fail(text.error());
  Sealer sealer;
  std::istringstream lines(*text);
  std::uint32_t id = 0;
  std::string hex;
  while (lines >> id >> hex) {
    Key& key = sealer.keys_[id];
    std::size_t size = 0;
    if (sodium_hex2bin(key.data(), key.size(), hex.data(), hex.size(), nullptr, &size, nullptr) !=
            0 ||
        size != key.size()) {
      sealer.keys_.clear();
      break;
    }
  }
  const bool whole = lines.eof();
  sodium_memzero(text->data(), text->size());
  sodium_memzero(hex.data(), hex.size());
  if (sealer.keys_.empty() || !whole) {
    return fail(Errc::invalid_argument, "the key file " + file.string() + " is damaged");
  }
  return sealer;
}

Sealer::~Sealer() {
  for (auto& [id, key] : keys_) sodium_memzero(key.data(), key.size());
}

std::string Sealer::seal(std::string_view place, std::string_view value) const {
  constexpr std::size_t nonce_size = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
  const auto& [id, key] = *keys_.rbegin();
  std::vector<unsigned char> box(nonce_size + value.size() +
                                 crypto_aead_xchacha20poly1305_ietf_ABYTES);
  randombytes_buf(box.data(), nonce_size);
  const std::string data = associated_data(id, place);
  unsigned long long size = 0;
  crypto_aead_xchacha20poly1305_ietf_encrypt(box.data() + nonce_size, &size, bytes(value),
                                             value.size(), bytes(data), data.size(), nullptr,
                                             box.data(), key.data());
  constexpr int variant = sodium_base64_VARIANT_ORIGINAL_NO_PADDING;
  std::string encoded(sodium_base64_encoded_len(box.size(), variant), '\0');
  sodium_bin2base64(encoded.data(), encoded.size(), box.data(), box.size(), variant);
  encoded.pop_back();  // the terminating NUL is counted
  return std::string(format) + std::to_string(id) + '.' + encoded;
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
  const auto key = keys_.find(id);
  if (key == keys_.end() || sealed.empty()) return damaged();

  std::vector<unsigned char> box(sealed.size());
  std::size_t size = 0;
  if (sodium_base642bin(box.data(), box.size(), sealed.data(), sealed.size(), nullptr, &size,
                        nullptr, sodium_base64_VARIANT_ORIGINAL_NO_PADDING) != 0 ||
      size < nonce_size + crypto_aead_xchacha20poly1305_ietf_ABYTES) {
    return damaged();
  }
  std::string value(size - nonce_size - crypto_aead_xchacha20poly1305_ietf_ABYTES, '\0');
  const std::string data = associated_data(id, place);
  unsigned long long opened = 0;
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(
          reinterpret_cast<unsigned char*>(value.data()), &opened, nullptr, box.data() + nonce_size,
          size - nonce_size, bytes(data), data.size(), box.data(), key->second.data()) != 0) {
    return damaged();
  }
  return value;
}

}  // namespace conversed::store
