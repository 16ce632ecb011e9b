// SPDX-License-Identifier: Apache-2.0
// Reading JSON that people and other programs write: every finding at once, doubled and unknown keys included.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace shardproof::harness {

/// The object that is the whole of text. Throws BadInput starting with `origin`: not JSON (with the place), not an
/// object, nested too deep, a doubled key at any depth.
nlohmann::ordered_json parse_object(std::string_view text, std::string_view origin);

/// Takes the fields of an object one by one. What is wrong goes to `findings`, one sentence each, starting with
/// `origin`; the value returned is then empty.
class Fields {
 public:
  Fields(const nlohmann::ordered_json& object, std::string origin, std::vector<std::string>& findings);

  /// Whether it is there, for a key that need not be.
  bool has(const std::string& key);
  std::string text(const std::string& key);
  std::string text_or_null(const std::string& key);
  /// One of the names; the first where it is not.
  std::string choice(const std::string& key, std::span<const std::string> names);
  bool boolean(const std::string& key);
  std::int64_t integer(const std::string& key, std::int64_t minimum);
  double number(const std::string& key);
  double number(const std::string& key, double minimum, double maximum);
  /// Text of 1 to 64 bytes without control characters.
  std::string name(const std::string& key);
  /// The value, which must be an object; otherwise an empty one.
  const nlohmann::ordered_json& object(const std::string& key);
  /// A list of texts.
  std::vector<std::string> list(const std::string& key);
  /// The object's members, all of which must be text.
  std::vector<std::pair<std::string, std::string>> texts(const std::string& key);

  void report(const std::string& finding);
  /// Reports the keys that nobody asked for.
  void finish();

 private:
  const nlohmann::ordered_json* find(const std::string& key);
  void wrong_type(const std::string& key, std::string_view wanted);

  const nlohmann::ordered_json& object_;
  std::string origin_;
  std::vector<std::string>& findings_;
  std::vector<std::string> known_;
};

/// Throws BadInput with the findings, one a line, if there are any.
void throw_findings(const std::vector<std::string>& findings);

}  // namespace shardproof::harness
