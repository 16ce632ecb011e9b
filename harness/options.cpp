// SPDX-License-Identifier: Apache-2.0
#include "harness/options.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <limits>
#include <type_traits>

#include <CLI/CLI.hpp>
#include <errno.h>
#include <fmt/format.h>

#include "harness/json_fields.hpp"
#include "harness/text.hpp"
#include "harness/tracks.hpp"
#include "harness/transport.hpp"
#include "impl/comm/mpi.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/nearest.hpp"

namespace shardproof::harness {
namespace {

constexpr std::string_view byte_units = "KMGT";

std::int64_t parse_count(std::string_view text, std::int64_t minimum, std::int64_t maximum) {
  const auto value = parse_number<std::int64_t>(text);
  if (!value || *value < minimum || *value > maximum)
    throw BadInput(fmt::format("\"{}\" is not a whole number from {} to {}", text, minimum, maximum));
  return *value;
}

}  // namespace

// CLI11 only finds out which words belong to which option; values are converted here, for one kind of message.
struct Options::State {
  struct Option {
    std::string name;
    std::vector<std::string> given;
    bool is_list;
    std::function<void(const std::string&)> set;
  };
  CLI::App app;
  std::deque<Option> options;  // CLI11 keeps references
  std::vector<std::string> names = {"--help"};
  std::string word;  // what the only one is called

  CLI::Option* add(const std::string& name, const std::string& what, const std::string& help, bool is_list,
                   std::function<void(const std::string&)> set) {
    Option& option = options.emplace_back(Option{name, {}, is_list, std::move(set)});
    names.push_back(name);
    return app.add_option(name, option.given, help)
        ->type_name(what)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
};

Options::Options(const Command& command) : state_(std::make_unique<State>()) {
  CLI::App& app = state_->app;
  app.name(std::string("shardproof ") + command.name);
  app.description(command.summary);
  app.footer(std::string("Example:\n  ") + command.example);
  app.set_help_flag("-h,--help", "Print this and exit");
  app.allow_extras();
}

Options::~Options() = default;

Options& Options::flag(const std::string& name, bool& value, const std::string& help) {
  state_->names.push_back(name);
  state_->app.add_flag_callback(
      name, [&value] { value = true; }, help);
  return *this;
}

Options& Options::text(const std::string& name, std::string& value, const std::string& what, const std::string& help) {
  state_
      ->add(name, what, help, false,
            [&value](const std::string& text) {
              if (text.empty()) throw BadInput("the value is empty");
              value = text;
            })
      ->default_str(value);
  return *this;
}

Options& Options::number(const std::string& name, std::optional<std::int64_t>& value, std::int64_t minimum,
                         std::int64_t maximum, const std::string& help) {
  state_->add(name, "N", help, false,
              [&value, minimum, maximum](const std::string& text) { value = parse_count(text, minimum, maximum); });
  return *this;
}

Options& Options::bytes(const std::string& name, std::optional<std::int64_t>& value, const std::string& help) {
  state_->add(name, "BYTES", help, false, [&value](const std::string& text) { value = parse_bytes(text); });
  return *this;
}

Options& Options::duration(const std::string& name, std::optional<double>& seconds, const std::string& help) {
  state_->add(name, "TIME", help, false, [&seconds](const std::string& text) { seconds = parse_duration(text); });
  return *this;
}

Options& Options::track(std::optional<Track>& value, const std::string& help) {
  state_->add("--track", "exact|f64|native", help + "; f32 is native", false,
              [&value](const std::string& text) { value = text == "f32" ? Track::native : track_named(text); });
  return *this;
}

Options& Options::shard(std::int64_t& index, std::int64_t& count) {
  state_->add("--shard", "I/N", "Only every N-th case, starting with the I-th (I = 1..N)", false,
              [&index, &count](const std::string& text) {
                const std::size_t slash = text.find('/');
                if (slash == std::string::npos) throw BadInput(fmt::format("\"{}\" is not of the form I/N", text));
                count = parse_count(text.substr(slash + 1), 1, std::numeric_limits<std::int64_t>::max());
                index = parse_count(text.substr(0, slash), 1, count);
              });
  return *this;
}

Options& Options::list(const std::string& name, std::vector<std::string>& values, const std::string& what,
                       const std::string& help) {
  state_->add(name, what, help, true, [&values](const std::string& text) { values.push_back(text); });
  return *this;
}

Options& Options::choice(const std::string& name, std::string& value, std::span<const std::string> names,
                         const std::string& help) {
  std::string what;
  for (const auto& word : names) what += (what.empty() ? "" : "|") + word;
  const std::vector<std::string> legal(names.begin(), names.end());
  state_->add(name, what, help, false, [&value, legal](const std::string& text) {
    if (std::ranges::find(legal, text) == legal.end()) throw BadInput(unknown("value", text, legal));
    value = text;
  });
  return *this;
}

Options& Options::notes(const std::string& text) {
  state_->app.footer(text + "\n\n" + state_->app.get_footer());
  return *this;
}

Options& Options::words(std::vector<std::string>& values, const std::string& what, const std::string& help) {
  state_->app.add_option(what, values, help)->type_name("");
  return *this;
}

Options& Options::word(std::string& value, const std::string& what, const std::string& help) {
  state_->word = what;
  state_->app.add_option(what, value, help)->type_name("");
  return *this;
}

bool Options::parse(std::span<const std::string> args) {
  std::vector<std::string> findings;
  CLI::App& app = state_->app;
  try {
    app.parse(std::vector<std::string>(args.rbegin(), args.rend()));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return false;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string message = error.what();
    findings.push_back(message.substr(0, message.find(':')) + ": a value is missing");
  } catch (const CLI::ParseError& error) {
    findings.push_back(error.what());
  }
  const std::vector<std::string> remaining = app.remaining();
  for (const std::string& word : remaining)
    if (word.starts_with("-")) findings.push_back(unknown("option", word.substr(0, word.find('=')), state_->names));
  if (findings.empty() && !remaining.empty())
    findings.push_back(fmt::format("unexpected \"{}\": {} takes {}", remaining.front(), app.get_name(),
                                   state_->word.empty() ? "options only" : "one " + state_->word + ": quote it"));
  for (const State::Option& option : state_->options) {
    if (option.given.size() > 1 && !option.is_list)
      findings.push_back(fmt::format("{} is given {} times", option.name, option.given.size()));
    for (const std::string& text : option.given) try {
        option.set(text);
      } catch (const BadInput& error) {
        findings.push_back(fmt::format("{}: {}", option.name, error.what()));
      }
  }
  throw_findings(findings);
  return true;
}

template <class T>
std::vector<T> parse_numbers(const std::string& option, const std::string& text, T minimum, T maximum) {
  std::vector<T> values;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    const auto value = parse_number<T>(std::string_view(word));
    if (!value || !(*value >= minimum && *value <= maximum))
      throw BadInput(fmt::format("{} {}: \"{}\" is not a {}number from {} to {}", option, text, word,
                                 std::is_integral_v<T> ? "whole " : "", minimum, maximum));
    values.push_back(*value);
    begin = end + 1;
  }
  return values;
}
template std::vector<std::int64_t> parse_numbers(const std::string&, const std::string&, std::int64_t, std::int64_t);
template std::vector<double> parse_numbers(const std::string&, const std::string&, double, double);

std::int64_t parse_bytes(std::string_view text) {
  double unit = 1;
  std::string_view digits = text;
  if (const std::size_t power = text.empty() ? std::string_view::npos : byte_units.find(text.back());
      power != std::string_view::npos) {
    unit = std::ldexp(1.0, 10 * static_cast<int>(power + 1));
    digits.remove_suffix(1);
  }
  const auto value = parse_number<double>(digits);
  // 2^62 keeps sums of such counts inside int64.
  if (!value || !(*value >= 0 && *value * unit <= 0x1p62) || *value * unit != std::floor(*value * unit))
    throw BadInput(fmt::format("\"{}\" is not a number of bytes (as 4096, 512K, 16G)", text));
  return static_cast<std::int64_t>(*value * unit);
}

double parse_duration(std::string_view text) {
  constexpr std::string_view units = "smh";
  double unit = 1;
  std::string_view digits = text;
  if (const auto k = text.empty() ? units.npos : units.find(text.back()); k != units.npos) {
    unit = std::pow(60.0, static_cast<double>(k));
    digits.remove_suffix(1);
  }
  const auto value = parse_number<double>(digits);
  if (!value || !(*value > 0 && *value * unit <= 1e9))
    throw BadInput(fmt::format("\"{}\" is not a time above 0 (as 90s, 30m, 1.5h; seconds without a unit)", text));
  return *value * unit;
}

std::string print_bytes(std::int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1024;
  std::size_t power = 0;
  while (value >= 1024 && power + 1 < byte_units.size()) {
    value /= 1024;
    ++power;
  }
  return fmt::format("{:.2f} {}iB", value, byte_units[power]);
}

std::string rerun_line(std::span<const std::string> words) {
  const std::string_view name = program_invocation_name;  // without a slash it is found in PATH
  std::string line;
  if (processes() != nullptr) {
    const auto launcher = comm::launched()->launcher;
    const char* const script = std::getenv("SHARDPROOF_MPIRUN");  // what scripts/mpirun.sh adds is kept
    line = fmt::format("{} -n {} ", script != nullptr && launcher == "mpirun" ? script : launcher, processes()->size());
  }
  line +=
      shell_quoted(name.find('/') == name.npos ? name : std::filesystem::absolute(name).lexically_normal().native());
  for (const std::string& word : words) line += " " + shell_quoted(word);
  return line;
}

}  // namespace shardproof::harness
