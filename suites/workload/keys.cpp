// SPDX-License-Identifier: Apache-2.0
#include "suites/workload/keys.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "suites/workload/text.hpp"

namespace shardproof::workload {
namespace {

using W = Workload;

// Sizes stay below 2^31, so that a product of two fits; what more of them multiply to is bounded in findings.cpp.
constexpr double largest = 2147483647;
constexpr Range any{};
// In the range of float, whatever the track.
constexpr Range at_least_0{.low = 0, .high = 1e30};
constexpr Range above_0{.low = 1e-30, .high = 1e30};
// 1/(1 - p) stays in the range of Q23.40, and 1 - p is not 0 in float.
constexpr Range dropped{.low = 0, .high = 0.999};
constexpr Range fraction{.low = 0, .high = 1, .open_high = true};
constexpr Range size{.low = 1, .high = largest};
constexpr Range size_or_0{.low = 0, .high = largest};

const std::array table{
    Key{"name", &W::name, any, "what records call it"},
    Key{"why", &W::why, any, "one sentence: what it is for"},

    Key{"layers", &W::layers, {.low = 1, .high = 10000}, "blocks"},
    Key{"hidden", &W::hidden, {.low = 1, .high = 1 << 24}, "features of a position; a multiple of heads"},
    Key{"heads", &W::heads, size, "attention heads"},
    Key{"kv_heads", &W::kv_heads, size, "key and value heads, a divisor of heads; 0: as heads"},
    Key{"mlp_hidden", &W::mlp_hidden, size, "features between the two maps of the MLP; 0: 4 * hidden"},
    Key{"vocab", &W::vocab, size, "tokens are 0 .. vocab-1"},
    Key{"sequence", &W::sequence, size, "positions of a sample"},
    Key{"activation", &W::activation, any, "of the MLP"},
    Key{"tied_head", &W::tied_head, any, "the head uses the token embedding's weight"},
    Key{"shared_block",
        &W::shared_block,
        {.low = 0, .high = 10000},
        "[p, q], p < q: layer q uses layer p's parameters"},
    Key{"layer_norm_epsilon", &W::layer_norm_epsilon, above_0, "added to the variance"},
    Key{"dropout", &W::dropout, dropped, "probability at all four sites"},
    Key{"label_smoothing", &W::label_smoothing, fraction, "weight of the uniform distribution in the loss"},
    Key{"window", &W::window, size_or_0, "a position sees this many positions back, itself included; 0: all"},
    Key{"unused", &W::unused, size_or_0, "sizes of parameters that are used nowhere"},
    Key{"frozen", &W::frozen, any, "parameter names; * matches any run of characters"},
    Key{"initialization", &W::initialization, any, "of the parameters; hostile leaves none zero or one"},
    Key{"init_std", &W::init_std, {.low = 0, .high = 1000}, "standard deviation of gpt2's initial weights"},

    Key{"corpus", &W::corpus, any, "markov, or the path of a text file whose bytes are the tokens"},
    Key{"documents", &W::documents, size, "lengths of packed documents; what is left of the sequence is padding"},
    Key{"valid_labels", &W::valid_labels, size_or_0, "labels kept in the samples of a batch, cycled; []: all"},
    Key{"prompt", &W::prompt, size_or_0, "positions at the start of a sample that have no label"},
    Key{"batch", &W::batch, size, "samples in a global batch"},
    Key{"samples", &W::samples, {.low = 0, .high = 0x1p53}, "size of the data set; 0: endless"},
    Key{"seed", &W::seed, any, "of every random number"},

    Key{"steps", &W::steps, size, "training steps"},
    Key{"optimizer", &W::optimizer, any, "what updates the parameters"},
    Key{"learning_rate", &W::learning_rate, at_least_0, "after the warm-up"},
    Key{"learning_rate_schedule", &W::learning_rate_schedule, any, "from learning_rate to minimum_learning_rate"},
    Key{"warmup_steps", &W::warmup_steps, size_or_0, "steps in which the learning rate rises from 0"},
    Key{"minimum_learning_rate", &W::minimum_learning_rate, at_least_0, "at the last step of linear and cosine"},
    Key{"momentum", &W::momentum, fraction, "of the momentum optimizer"},
    Key{"beta1", &W::beta1, fraction, "decay of Adam's first moment"},
    Key{"beta2", &W::beta2, fraction, "decay of Adam's second moment"},
    Key{"epsilon", &W::epsilon, above_0, "added to Adam's denominator"},
    Key{"weight_decay", &W::weight_decay, at_least_0, "of adamw"},
    Key{"decay_group", &W::decay_group, any, "the parameters that weight_decay acts on"},
    Key{"clip", &W::clip, at_least_0, "largest norm of the whole gradient; 0: no limit"},
    Key{"loss_scale", &W::loss_scale, {.low = 1, .high = 0x1p40}, "of the exact track; a power of two"},
};

template <std::size_t n>
using Names = std::array<std::string_view, n>;
constexpr Names<2> activations{"gelu", "relu"};
constexpr Names<2> initializations{"gpt2", "hostile"};
constexpr Names<4> optimizers{"sgd", "momentum", "adam", "adamw"};
constexpr Names<3> decay_groups{"matrices", "all", "none"};
constexpr Names<3> schedules{"constant", "linear", "cosine"};

std::string numbers(const char* article_and_kind, const char* kinds, const Range& range, bool list) {
  std::string text = list ? fmt::format("a list of {}", kinds) : article_and_kind;
  const bool low = range.low > any.low, high = range.high < any.high;
  if (low && high && !range.open_high) return text + fmt::format(" from {} to {}", range.low, range.high);
  if (low) text += fmt::format(" >= {}", range.low);
  if (high) text += fmt::format(" and < {}", range.high);
  return text;
}

struct Legal {
  const Range& range;
  std::string operator()(std::string W::*) const { return "a text in quotes"; }
  std::string operator()(std::int64_t W::*) const { return numbers("an integer", "integers", range, false); }
  std::string operator()(std::uint64_t W::*) const { return "an integer from 0 to 18446744073709551615"; }
  std::string operator()(double W::*) const { return numbers("a finite number", "finite numbers", range, false); }
  std::string operator()(bool W::*) const { return "true or false"; }
  std::string operator()(std::vector<std::int64_t> W::*) const {
    return numbers("an integer", "integers", range, true);
  }
  std::string operator()(std::vector<std::string> W::*) const { return "a list of texts in quotes"; }
  template <class E>
  std::string operator()(E W::*) const {
    const auto names = names_of(E{});
    return fmt::format("{} or {}", joined(names.first(names.size() - 1), ", "), names.back());
  }
};

struct Print {
  std::string operator()(const std::string& x) const {
    return nlohmann::json(x).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  std::string operator()(std::int64_t x) const { return std::to_string(x); }
  std::string operator()(std::uint64_t x) const { return std::to_string(x); }
  std::string operator()(double x) const { return fmt::format("{}", x); }  // the shortest that reads back
  std::string operator()(bool x) const { return x ? "true" : "false"; }
  template <class T>
  std::string operator()(const std::vector<T>& x) const {
    std::vector<std::string> parts(x.size());
    std::transform(x.begin(), x.end(), parts.begin(), *this);
    return fmt::format("[{}]", joined(parts, ", "));
  }
  template <class E>
  requires std::is_enum_v<E> std::string operator()(E x) const {
    return fmt::format("\"{}\"", names_of(x)[static_cast<std::size_t>(x)]);
  }
};

struct TypeName {
  std::string operator()(std::string W::*) const { return "text"; }
  std::string operator()(std::int64_t W::*) const { return "integer"; }
  std::string operator()(std::uint64_t W::*) const { return "integer"; }
  std::string operator()(double W::*) const { return "number"; }
  std::string operator()(bool W::*) const { return "true | false"; }
  std::string operator()(std::vector<std::int64_t> W::*) const { return "list of integers"; }
  std::string operator()(std::vector<std::string> W::*) const { return "list of texts"; }
  template <class E>
  std::string operator()(E W::*) const {
    return joined(names_of(E{}), " | ");
  }
};

}  // namespace

std::span<const std::string_view> names_of(Activation) { return activations; }
std::span<const std::string_view> names_of(Initialization) { return initializations; }
std::span<const std::string_view> names_of(OptimizerKind) { return optimizers; }
std::span<const std::string_view> names_of(DecayGroup) { return decay_groups; }
std::span<const std::string_view> names_of(RateSchedule) { return schedules; }

std::span<const Key> key_table() { return table; }

const Key* find_key(std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const Key& key) { return key.name == name; });
  return found == table.end() ? nullptr : &*found;
}

std::string legal_values(const Key& key) { return std::visit(Legal{key.range}, key.member); }

std::string value_text(const Workload& workload, const Key& key) {
  return std::visit([&](auto member) { return Print{}(workload.*member); }, key.member);
}

std::vector<KeyInfo> keys() {
  std::vector<KeyInfo> infos;
  for (const Key& key : table) {
    infos.push_back({std::string(key.name), std::visit(TypeName{}, key.member), value_text(Workload{}, key),
                     std::string(key.meaning)});
  }
  return infos;
}

std::string print(const Workload& workload) {
  std::vector<std::string> lines;
  for (const Key& key : table) lines.push_back(fmt::format("  \"{}\": {}", key.name, value_text(workload, key)));
  return fmt::format("{{\n{}\n}}\n", joined(lines, ",\n"));
}

}  // namespace shardproof::workload
