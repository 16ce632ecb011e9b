// SPDX-License-Identifier: Apache-2.0
// The options of one command: declared with the variable that takes the value, then parsed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/command.hpp"
#include "kernels/core/track.hpp"

namespace shardproof::harness {

/// Each declaration takes the option's name ("--steps"), the variable (whose value is the default, and which must
/// outlive parse), and one line of help. An option is given at most once, but for lists.
class Options {
 public:
  explicit Options(const Command& command);
  ~Options();

  Options& flag(const std::string& name, bool& value, const std::string& help);
  /// Not empty.
  Options& text(const std::string& name, std::string& value, const std::string& what, const std::string& help);
  /// A whole number in [minimum, maximum].
  Options& number(const std::string& name, std::optional<std::int64_t>& value, std::int64_t minimum,
                  std::int64_t maximum, const std::string& help);
  /// Bytes, with K, M, G or T for powers of 1024.
  Options& bytes(const std::string& name, std::optional<std::int64_t>& value, const std::string& help);
  /// Seconds, or with s, m or h at the end.
  Options& duration(const std::string& name, std::optional<double>& seconds, const std::string& help);
  Options& track(std::optional<Track>& value, const std::string& help);
  /// i/n, 1 <= i <= n.
  Options& shard(std::int64_t& index, std::int64_t& count);
  /// May be given several times.
  Options& list(const std::string& name, std::vector<std::string>& values, const std::string& what,
                const std::string& help);
  /// One of the names.
  Options& choice(const std::string& name, std::string& value, std::span<const std::string> names,
                  const std::string& help);
  /// Lines for --help, above the example.
  Options& notes(const std::string& text);
  /// The words that are no options.
  Options& words(std::vector<std::string>& values, const std::string& what, const std::string& help);
  /// At most one of them.
  Options& word(std::string& value, const std::string& what, const std::string& help);

  /// False when --help was asked for and printed. Throws BadInput with every finding, one a line: an unknown option
  /// (with the nearest one), a doubled one, a missing or wrong value.
  bool parse(std::span<const std::string> args);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// "2,1" of an option, as numbers in [minimum, maximum]. Of std::int64_t and double. Throws BadInput.
template <class T>
std::vector<T> parse_numbers(const std::string& option, const std::string& text, T minimum, T maximum);
/// Bytes as people write them: "512", "4K", "1.5G". Throws BadInput.
std::int64_t parse_bytes(std::string_view text);
/// "30m", "1.5h", "90s", "90", as seconds; above 0. Throws BadInput.
double parse_duration(std::string_view text);
/// "1.50 GiB"
std::string print_bytes(std::int64_t bytes);

/// The words as one line for a POSIX shell, beginning with this program, which is found from any folder.
std::string rerun_line(std::span<const std::string> words);

}  // namespace shardproof::harness
