// SPDX-License-Identifier: Apache-2.0
#include "suites/workload/random_workload.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "suites/workload/batch.hpp"
#include "suites/workload/keys.hpp"

namespace shardproof::workload {
namespace {

constexpr std::int64_t count = 2000;

/// Multiplications of forward and backward.
double multiplications(const Workload& w) {
  const auto d = [](std::int64_t x) { return static_cast<double>(x); };
  const double rows = d(w.batch * w.sequence);
  const double maps = 2 * d(w.hidden) * (d(w.hidden) + d(w.kv_hidden()) + d(w.mlp_hidden));
  const double attention = 2 * d(w.heads * w.sequence * w.head_size());
  return 3 * rows * (d(w.layers) * (maps + attention) + d(w.vocab * w.hidden));
}

TEST(RandomWorkload, IsLegalAndSmall) {
  double most = 0;
  for (std::int64_t index = 0; index < count; ++index) {
    const Workload w = random_workload(7, index);
    for (const std::string& text : findings(w)) ADD_FAILURE() << w.name << ": " << text;
    most = std::max(most, multiplications(w));
    if (index % 20 == 0) {
      EXPECT_EQ(print(parse(print(w), "printed")), print(w));
    }
  }
  EXPECT_LT(most, 20e6);
}

TEST(RandomWorkload, RepeatsAndDiffers) {
  EXPECT_EQ(print(random_workload(7, 3)), print(random_workload(7, 3)));
  EXPECT_NE(print(random_workload(7, 3)), print(random_workload(7, 4)));
  EXPECT_NE(print(random_workload(7, 3)), print(random_workload(8, 3)));
}

TEST(RandomWorkload, EveryKeyVariesAndEveryEnumValueOccurs) {
  std::map<std::string_view, std::map<std::string, int>> values;
  for (std::int64_t index = 0; index < count; ++index) {
    const Workload w = random_workload(7, index);
    for (const Key& key : key_table()) ++values[key.name][value_text(w, key)];
  }
  for (const Key& key : key_table()) {
    if (key.name == "why" || key.name == "corpus" || key.name == "steps") continue;
    EXPECT_GE(values[key.name].size(), 2u) << key.name;
    std::visit(
        [&]<class T>(T Workload::*) {
          if constexpr (std::is_enum_v<T>) {
            EXPECT_EQ(values[key.name].size(), names_of(T{}).size()) << key.name;
          }
        },
        key.member);
  }
}

TEST(RandomWorkload, EveryOptionIsOnInAGoodShare) {
  std::map<std::string, std::int64_t> on;
  for (std::int64_t index = 0; index < count; ++index) {
    const Workload w = random_workload(7, index);
    const auto add = [&](const char* what, bool is_on) { on[what] += is_on ? 1 : 0; };
    const auto has = [](const auto& list, auto value) {
      return std::find(list.begin(), list.end(), value) != list.end();
    };
    add("one layer", w.layers == 1);
    add("grouped heads", w.kv_heads < w.heads);
    add("one kv head of many", w.kv_heads == 1 && w.heads > 1);
    add("one position", w.sequence == 1);
    add("one sample", w.batch == 1);
    add("untied", !w.tied_head);
    add("relu", w.activation == Activation::relu);
    add("shared", !w.shared_block.empty());
    add("shared neighbours", !w.shared_block.empty() && w.shared_block[1] == w.shared_block[0] + 1);
    add("dropout", w.dropout > 0);
    add("smoothing", w.label_smoothing > 0);
    add("window", w.window > 0);
    add("unused", !w.unused.empty());
    add("unused of size 0", has(w.unused, 0));
    add("frozen", !w.frozen.empty());
    add("documents", !w.documents.empty());
    std::int64_t packed = 0;
    for (std::int64_t length : w.documents) packed += length;
    add("padding", packed > 0 && packed < w.sequence);
    add("valid labels", !w.valid_labels.empty());
    add("sample without label", has(w.valid_labels, 0));
    add("prompt", w.prompt > 0);
    add("short batch", w.samples > 0 && w.samples % w.batch != 0);
    add("clip", w.clip > 0);
    add("decay", w.weight_decay > 0);
    add("warmup", w.warmup_steps > 0);
    add("mlp of 4 hidden", w.mlp_hidden == 4 * w.hidden);
    const Corpus corpus(w);
    int labelled = 0;
    for (std::int64_t step = 1; step <= w.steps; ++step) labelled += batch(w, corpus, step).label_count > 0 ? 1 : 0;
    EXPECT_GT(labelled, 0) << w.name;
    add("step without label", labelled < w.steps);
  }
  for (const auto& [what, times] : on) {
    EXPECT_GE(times, count / 40) << what;
    EXPECT_LE(times, count * 3 / 4) << what;
  }
}

}  // namespace
}  // namespace shardproof::workload
