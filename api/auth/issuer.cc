#include "api/auth/issuer.h"

namespace conversed::api {

std::string_view base_of(std::string_view path, std::string_view base_path) {
  if (base_path.empty()) return {};
  const bool below = path.starts_with(base_path) && path.substr(base_path.size()).starts_with('/');
  const bool behind =
      path.starts_with(metadata_path) && path.substr(metadata_path.size()) == base_path;
  return below || behind ? base_path : std::string_view();
}

std::string issuer_of(const Request& request, std::string_view configured,
                      std::string_view base_path) {
  if (!configured.empty()) return std::string(configured);
  const bool tls = request.header("x-forwarded-proto").value_or("") == "https";
  std::string issuer = tls ? "https://" : "http://";
  issuer += request.header("host").value_or("localhost");
  return issuer.append(base_of(request.path, base_path));
}

}  // namespace conversed::api
