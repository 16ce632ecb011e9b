// SPDX-License-Identifier: Apache-2.0
#include "suites/workload/findings.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "kernels/core/nearest.hpp"
#include "suites/workload/keys.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::workload {
namespace {

class Examiner {
 public:
  explicit Examiner(const Workload& workload) : w_(workload) {}

  std::vector<Finding> run() {
    for (const Key& key : key_table()) range(key);
    if (ok({"hidden", "heads"}) && w_.hidden % w_.heads != 0) {
      add({"hidden", "heads"}, fmt::format("heads is {}, which does not divide hidden = {}", w_.heads, w_.hidden));
    }
    if (ok({"heads", "kv_heads"}) && w_.heads % w_.kv_heads != 0) {
      add({"heads", "kv_heads"},
          fmt::format("kv_heads is {}, which does not divide heads = {}", w_.kv_heads, w_.heads));
    }
    text("name", w_.name);
    text("corpus", w_.corpus);
    shared_block();
    data();
    training();
    if (ok({"layers", "hidden", "heads", "kv_heads", "mlp_hidden", "vocab", "sequence", "batch"})) volume();
    if (ok({"layers", "heads", "shared_block"})) frozen();
    return std::move(findings_);
  }

 private:
  using Keys = std::initializer_list<std::string_view>;

  void add(Keys keys, std::string text) { findings_.push_back({keys, std::move(text)}); }
  /// No finding so far is about one of the keys.
  bool ok(Keys keys) const {
    return std::none_of(findings_.begin(), findings_.end(), [&](const Finding& finding) {
      return std::find_first_of(keys.begin(), keys.end(), finding.keys.begin(), finding.keys.end()) != keys.end();
    });
  }

  void range(const Key& key) {
    const auto inside = [&](auto x) { return key.range.contains(static_cast<double>(x)); };
    const bool legal = std::visit(
        [&](auto member) {
          const auto& value = w_.*member;
          using T = std::remove_cvref_t<decltype(value)>;
          if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>) {
            return inside(value);
          } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
            return std::all_of(value.begin(), value.end(), inside);
          } else {
            return true;
          }
        },
        key.member);
    if (!legal)
      add({key.name}, fmt::format("{} is {}; legal: {}", key.name, shortened(value_text(w_, key)), legal_values(key)));
  }

  void text(std::string_view key, const std::string& value) {
    const auto control = [](char c) { return static_cast<unsigned char>(c) < 32 || c == 127; };
    if (value.empty() || std::any_of(value.begin(), value.end(), control)) {
      add({key}, fmt::format("{} is {}; legal: a text that is not empty and has no control characters", key,
                             shortened(value_text(w_, *find_key(key)))));
    }
  }

  void shared_block() {
    const auto& s = w_.shared_block;
    if (s.empty() || !ok({"shared_block", "layers"})) return;
    if (s.size() != 2 || s[0] >= s[1] || s[1] >= w_.layers) {
      add({"shared_block", "layers"}, fmt::format("shared_block is {}; legal: [] or [p, q] with p < q < layers = {}",
                                                  shortened(value_text(w_, *find_key("shared_block"))), w_.layers));
    }
  }

  void data() {
    if (ok({"documents", "sequence"})) {
      // Each is below 2^31, so it takes 2^32 of them to overflow.
      const std::int64_t total = std::accumulate(w_.documents.begin(), w_.documents.end(), std::int64_t{0});
      if (total > w_.sequence) {
        add({"documents", "sequence"},
            fmt::format("documents add up to {}, more than sequence = {}", total, w_.sequence));
      }
    }
    if (ok({"prompt", "sequence"}) && w_.prompt > w_.sequence) {
      add({"prompt", "sequence"}, fmt::format("prompt is {}, more than sequence = {}", w_.prompt, w_.sequence));
    }
  }

  void training() {
    if (w_.weight_decay != 0 && w_.optimizer != OptimizerKind::adamw) {
      add({"weight_decay", "optimizer"},
          fmt::format("weight_decay is {}, which has no effect: optimizer is {}, and only adamw decays",
                      w_.weight_decay, names_of(w_.optimizer)[static_cast<std::size_t>(w_.optimizer)]));
    }
    if (w_.minimum_learning_rate != 0 && w_.learning_rate_schedule == RateSchedule::constant) {
      add({"minimum_learning_rate", "learning_rate_schedule"},
          fmt::format("minimum_learning_rate is {}, which has no effect: learning_rate_schedule is constant",
                      w_.minimum_learning_rate));
    }
    int exponent = 0;
    if (ok({"loss_scale"}) && std::frexp(w_.loss_scale, &exponent) != 0.5) {
      add({"loss_scale"}, fmt::format("loss_scale is {}; legal: a power of two", w_.loss_scale));
    }
  }

  /// No tensor, and no sum of tensors, may have more elements than int64 counts bytes of with room to spare.
  void volume() {
    constexpr double limit = 0x1p56;
    const auto d = [](std::int64_t x) { return static_cast<double>(x); };
    const double rows = d(w_.batch) * d(w_.sequence);
    const double width = std::max({4 * d(w_.hidden), d(w_.mlp_hidden), d(w_.vocab)});
    const auto bound = [&](Keys keys, const char* what, double elements) {
      if (elements > limit)
        add(keys, fmt::format("{} have {:.3g} elements; at most {:.3g} are possible", what, elements, limit));
    };
    bound({"batch", "heads", "sequence", "layers"}, "attention probabilities (layers x batch x heads x sequence^2)",
          d(w_.layers) * rows * d(w_.heads) * d(w_.sequence));
    bound({"batch", "sequence", "hidden", "mlp_hidden", "vocab", "layers"},
          "activations (layers x batch x sequence x the widest of 4 hidden, mlp_hidden and vocab)",
          d(w_.layers) * rows * width);
    bound({"hidden", "mlp_hidden", "vocab", "sequence", "layers"}, "parameters",
          d(w_.layers) * d(w_.hidden) * (4 * d(w_.hidden) + 2 * d(w_.mlp_hidden) + 16) +
              d(w_.hidden) * (2 * d(w_.vocab) + d(w_.sequence)));
  }

  void frozen() {
    std::vector<std::string> names;
    bool trains = false;
    for (Parameter& parameter : parameters(w_)) {
      trains = trains || parameter.trainable;
      names.push_back(std::move(parameter.name));
    }
    for (const std::string& pattern : w_.frozen) {
      if (std::any_of(names.begin(), names.end(), [&](const auto& name) { return matches(pattern, name); })) continue;
      add({"frozen"},
          fmt::format("frozen: \"{}\" matches no parameter; the nearest is \"{}\"", pattern, nearest(pattern, names)));
    }
    if (!trains) add({"frozen"}, "frozen leaves no parameter to train");
  }

  const Workload& w_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> examine(const Workload& workload) { return Examiner(workload).run(); }

std::vector<std::string> findings(const Workload& workload) {
  std::vector<std::string> texts;
  for (Finding& finding : examine(workload)) texts.push_back(std::move(finding.text));
  return texts;
}

}  // namespace shardproof::workload
