// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace shardproof {

/// SHA-256 of a stream of bytes.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  Sha256& add(std::span<const std::byte> bytes);
  Sha256& add(std::string_view text);
  /// The digest of what was added; the object is spent.
  std::array<std::uint8_t, 32> finish();
  /// As 64 hexadecimal digits.
  std::string finish_hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardproof
