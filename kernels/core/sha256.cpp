// SPDX-License-Identifier: Apache-2.0
#include "kernels/core/sha256.hpp"

#include <openssl/evp.h>

#include "kernels/core/errors.hpp"

namespace shardproof {

namespace {

void require(int ok) {
  if (ok != 1) throw InternalError("libcrypto cannot compute SHA-256");
}

}  // namespace

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() { require(context != nullptr); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  require(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr));
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::add(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()));
  return *this;
}

Sha256& Sha256::add(std::string_view text) { return add(std::as_bytes(std::span(text))); }

std::array<std::uint8_t, 32> Sha256::finish() {
  std::array<std::uint8_t, 32> digest{};
  require(EVP_DigestFinal_ex(state_->context, digest.data(), nullptr));
  return digest;
}

std::string Sha256::finish_hex() {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const auto byte : finish()) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace shardproof
