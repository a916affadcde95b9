#include "api/sign_in_queue.h"

#include <utility>

#include "api/auth/authenticator.h"
#include "api/blocking_pool.h"
#include "api/client_address.h"

namespace conversed::api {

bool post_sign_in(Services& services, std::string_view email, std::string_view peer,
                  std::function<void()> work) {
  const auto line = services.authenticator.knows(email, peer) ? BlockingPool::Line::known
                                                              : BlockingPool::Line::others;
  return services.sign_ins.post(counted_address(peer), line, std::move(work));
}

}  // namespace conversed::api
