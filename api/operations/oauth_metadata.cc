// GET /.well-known/oauth-authorization-server: what clients have to know to use OAuth 2.0 here
// (RFC 8414). Below the base path, and with the base path behind it, it is of the issuer there.
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "api/auth/issuer.h"
#include "api/openapi/description.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "api/services.h"

namespace conversed::api {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 3> grant_types{"authorization_code", "password",
                                                      "refresh_token"};
constexpr std::array<std::string_view, 3> client_authentication{"client_secret_basic",
                                                                "client_secret_post", "none"};

Result<Response> show(const Call& call, DaemonServices& services) {
  const auto& options = services.options;
  const auto issuer = issuer_of(call.request, options.oauth.issuer, options.api.base_path);
  const std::string routes = issuer + "/auth/oauth2/";
  // It names the address that the client has used: not for a cache that others share.
  return json_response(status::ok,
                       {{"issuer", issuer},
                        {"authorization_endpoint", routes + "authorize"},
                        {"token_endpoint", routes + "token"},
                        {"revocation_endpoint", routes + "revoke"},
                        {"response_types_supported", json::array({"code"})},
                        {"response_modes_supported", json::array({"query"})},
                        {"grant_types_supported", grant_types},
                        {"token_endpoint_auth_methods_supported", client_authentication},
                        {"revocation_endpoint_auth_methods_supported", client_authentication},
                        {"code_challenge_methods_supported", json::array({"S256"})},
                        {"authorization_response_iss_parameter_supported", true}},
                       {{"Cache-Control", "no-store"}});
}

openapi::Description describe_metadata() {
  using namespace openapi;
  const auto url = text_like("^https?://");
  const auto metadata = object(
      {{"issuer", described("As `iss` of the authorization answers (RFC 9207).", url)},
       {"authorization_endpoint", url},
       {"token_endpoint", url},
       {"revocation_endpoint", url},
       {"response_types_supported", list_of(constant("code"))},
       {"response_modes_supported", list_of(constant("query"))},
       {"grant_types_supported", list_of(one_of(grant_types))},
       {"token_endpoint_auth_methods_supported", list_of(one_of(client_authentication))},
       {"revocation_endpoint_auth_methods_supported", list_of(one_of(client_authentication))},
       {"code_challenge_methods_supported", list_of(constant("S256"))},
       {"authorization_response_iss_parameter_supported", constant(true)}});
  return {.summary = "Get the authorization server's metadata",
          .details =
              "As of RFC 8414. The issuer is the setting `oauth.issuer`, or else the address that "
              "the client has used.",
          .answers = {{.description = "The metadata.",
                       .content = json_content(named("AuthorizationServer", metadata)),
                       .headers = {{"Cache-Control", "`no-store`.", constant("no-store")}}}}};
}

}  // namespace

constinit const Operation oauth_metadata_operation =
    for_all("oauthMetadata", Method::get, metadata_path, show, describe_metadata);

}  // namespace conversed::api
