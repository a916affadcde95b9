#include "api/auth/sign_in_queue.h"

#include <utility>

#include "api/auth/authenticator.h"
#include "api/http/client_address.h"
#include "api/live/blocking_pool.h"

namespace conversed::api {

bool post_sign_in(const Authenticator& authenticator, BlockingPool& pool, std::string_view email,
                  std::string_view peer, std::function<void()> work) {
  const auto line =
      authenticator.knows(email, peer) ? BlockingPool::Line::known : BlockingPool::Line::others;
  return pool.post(counted_address(peer), line, std::move(work));
}

}  // namespace conversed::api
