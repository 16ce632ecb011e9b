// SPDX-License-Identifier: Apache-2.0
// What is trained: model shape and options, corpus, optimizer, steps, global batch. One flat table of keys, used for
// parsing, printing, `--set`, errors and `list --workloads --example`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/core/dtype.hpp"

namespace shardproof::workload {

enum class Activation : std::uint8_t { gelu, relu };
enum class Initialization : std::uint8_t {
  gpt2,  ///< weights uniform with standard deviation init_std, residual projections / sqrt(2 layers); biases 0, norms 1
  hostile,  ///< every weight, bias and norm non-trivial: a fault that only shows on them shows
};
enum class OptimizerKind : std::uint8_t { sgd, momentum, adam, adamw };
enum class DecayGroup : std::uint8_t { matrices, all, none };
enum class RateSchedule : std::uint8_t { constant, linear, cosine };

/// A pipeline that updates without a flush, as the sequential program that it is (ARITHMETIC.md, section 13): the model
/// lies on stages, and a step reads old weights on some. It is no key of a workload file: a strategy's schedule says it
/// (plan::with_program_keys).
struct StaleProgram {
  enum class Rule : std::uint8_t { none, stashed, vertical_sync, double_buffered };
  Rule rule = Rule::none;
  std::vector<std::int64_t> stage_layers = {};  ///< layers of each stage
  std::vector<std::int64_t> replicas = {};      ///< ranks of each stage, which take steps in turn; empty: one each

  explicit operator bool() const { return rule != Rule::none; }
};

/// Keys of the workload file have the names of the members.
struct Workload {
  std::string name = "custom";
  std::string why;  ///< one sentence, not part of the hash

  // Model (ARITHMETIC.md, section 4)
  std::int64_t layers = 2, hidden = 24, heads = 4;
  std::int64_t kv_heads = 0;    ///< 0: as heads
  std::int64_t mlp_hidden = 0;  ///< 0: 4 * hidden
  std::int64_t vocab = 256, sequence = 16;
  Activation activation = Activation::gelu;
  bool tied_head = true;
  std::vector<std::int64_t> shared_block;  ///< [] or [p, q], p < q: layer q uses layer p's parameters
  double layer_norm_epsilon = 1e-5;
  double dropout = 0;                ///< probability at all four sites
  double label_smoothing = 0;        ///< in [0, 1)
  std::int64_t window = 0;           ///< 0: causal; else keys j with i - j < window
  std::vector<std::int64_t> unused;  ///< sizes of parameters that are used nowhere (0 is legal)
  std::vector<std::string> frozen;   ///< parameter names, `*` matches any run of characters
  Initialization initialization = Initialization::gpt2;
  double init_std = 0.02;

  // Data
  std::string corpus = "markov";           ///< "markov", or the path of a text file whose bytes are the tokens
  std::vector<std::int64_t> documents;     ///< lengths of packed documents; [] : one. The rest: one more, unlabelled
  std::vector<std::int64_t> valid_labels;  ///< labels kept in the samples of a batch, cycled; [] : all
  std::int64_t prompt = 0;                 ///< positions at the start of each sample that have no label
  std::int64_t batch = 4;                  ///< samples in a global batch
  std::int64_t samples = 0;  ///< size of the data set; 0: endless. The last batch of an epoch may be short
  std::uint64_t seed = 1;

  // Training
  std::int64_t steps = 3;
  OptimizerKind optimizer = OptimizerKind::adam;
  double learning_rate = 1e-3;
  RateSchedule learning_rate_schedule = RateSchedule::constant;
  std::int64_t warmup_steps = 0;
  double minimum_learning_rate = 0;
  double momentum = 0.9, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double weight_decay = 0;  ///< adamw only
  DecayGroup decay_group = DecayGroup::matrices;
  double clip = 0;            ///< 0: off
  double loss_scale = 65536;  ///< exact track only; a power of two

  StaleProgram stale;

  std::int64_t head_size() const { return hidden / heads; }
  std::int64_t kv_hidden() const { return kv_heads * head_size(); }
};

/// A workload file (JSON object; its path holds a / or ends in .json), or the name of a built-in one: tiny, laptop,
/// gpt2-124m and the other files of suites/shapes; random:SEED:INDEX (random_workload.hpp); or hf:PATH, a config.json
/// (hf_config.hpp).
/// `settings` are "key=value", applied over it; texts need no quotes, lists no brackets. Sizes of 0 that mean "as
/// another" are filled in. Throws BadInput with every finding, one a line: unknown keys (with the nearest valid one),
/// doubled keys, wrong types, illegal values.
Workload load(std::string_view name_or_path, std::span<const std::string> settings = {});
Workload parse(std::string_view json_text, std::string_view origin, std::span<const std::string> settings = {});

/// Every finding about a workload whose types are right; empty when it is legal.
std::vector<std::string> findings(const Workload& workload);

/// The JSON text that parses back; every key, in the table's order.
std::string print(const Workload& workload);

/// SHA-256 over print() without `name` and `why`, with the hash of a corpus file's bytes in place of its path, and over
/// the stale program where there is one. Reads the corpus; throws as Corpus does.
std::string hash(const Workload& workload);

struct KeyInfo {
  std::string name, type, standard, meaning;
};
std::vector<KeyInfo> keys();

/// Built-in workloads: name and why.
std::vector<Workload> built_in();

/// One parameter of the model, in the order of ARITHMETIC.md's table.
struct Parameter {
  std::string name;
  Dims dims;
  bool decays;       ///< in the decay group
  bool trainable;    ///< not frozen
  bool used = true;  ///< by some part of the model; those of `unused` are not, never decay, and their gradient is zero
  std::int64_t elements() const { return elements_of(dims); }
};
std::vector<Parameter> parameters(const Workload& workload);

/// The layer whose parameters layer `layer` uses: itself, but for the second site of shared_block.
std::int64_t parameter_layer(const Workload& workload, std::int64_t layer);

/// Initial values, all on the grid of Q23.40, hence exact as Fixed and as double.
std::vector<double> initial_values(const Workload& workload, const Parameter& parameter);

/// The learning rate of step t = 1, 2, ... (ARITHMETIC.md, section 8).
double learning_rate(const Workload& workload, std::int64_t step);

}  // namespace shardproof::workload
