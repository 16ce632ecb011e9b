// SPDX-License-Identifier: Apache-2.0
#include "suites/workload/hf_config.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "kernels/core/errors.hpp"
#include "suites/workload/json.hpp"
#include "suites/workload/text.hpp"

namespace shardproof::workload {
namespace {

using Json = nlohmann::ordered_json;

/// Fields with the meaning of a key of ours, under GPT-2's name and that of later models.
struct Renamed {
  std::string_view key;
  std::vector<std::string_view> fields;
  bool required;
};
const std::array<Renamed, 10> renamed = {{
    {"layers", {"n_layer", "num_hidden_layers"}, true},
    {"hidden", {"n_embd", "hidden_size"}, true},
    {"heads", {"n_head", "num_attention_heads"}, true},
    {"kv_heads", {"num_key_value_heads"}, false},
    {"mlp_hidden", {"n_inner", "intermediate_size"}, false},
    {"vocab", {"vocab_size"}, true},
    {"sequence", {"n_positions", "max_position_embeddings", "n_ctx"}, true},
    {"tied_head", {"tie_word_embeddings"}, false},
    {"layer_norm_epsilon", {"layer_norm_epsilon", "layer_norm_eps"}, false},
    {"init_std", {"initializer_range"}, false},
}};

/// Fields that must have the value that the model has; null is as if they were not there.
struct Fixed {
  std::string_view field;
  Json value;
};
const std::vector<Fixed>& fixed() {
  static const std::vector<Fixed> fields = {{"model_type", "gpt2"},
                                            {"scale_attn_weights", true},
                                            {"scale_attn_by_inverse_layer_idx", false},
                                            {"add_cross_attention", false},
                                            {"attention_bias", true},
                                            {"mlp_bias", true},
                                            {"position_embedding_type", "absolute"},
                                            {"is_decoder", true},
                                            {"is_encoder_decoder", false}};
  return fields;
}

/// Fields that say nothing about what is trained.
constexpr std::array<std::string_view, 27> ignored = {"architectures",
                                                      "bos_token_id",
                                                      "eos_token_id",
                                                      "pad_token_id",
                                                      "transformers_version",
                                                      "torch_dtype",
                                                      "dtype",
                                                      "use_cache",
                                                      "summary_type",
                                                      "summary_use_proj",
                                                      "summary_activation",
                                                      "summary_proj_to_labels",
                                                      "summary_first_dropout",
                                                      "task_specific_params",
                                                      "gradient_checkpointing",
                                                      "reorder_and_upcast_attn",
                                                      "_name_or_path",
                                                      "output_past",
                                                      "output_attentions",
                                                      "output_hidden_states",
                                                      "return_dict",
                                                      "id2label",
                                                      "label2id",
                                                      "pretraining_tp",
                                                      "_attn_implementation",
                                                      "attn_implementation",
                                                      "model_name"};

constexpr std::array<std::string_view, 3> dropouts = {"resid_pdrop", "embd_pdrop", "attn_pdrop"};
/// Names of dropout in configs of other models: must be 0.
constexpr std::array<std::string_view, 6> other_dropouts = {"resid_dropout",     "embd_dropout",   "attn_dropout",
                                                            "attention_dropout", "hidden_dropout", "mlp_dropout"};

class Translation {
 public:
  Translation(std::string_view text, std::string_view origin) : origin_(origin) {
    std::vector<DoubledKey> doubled;
    config_ = parse_json(text, origin, doubled);
    if (!config_.is_object()) throw BadInput(fmt::format("{}: a config is one JSON object", origin));
    for (const auto& key : doubled)
      if (key.depth == 1) report(fmt::format("{} is given more than once", shortened(key.key)));
  }

  std::string run() {
    result_["why"] = "From a config.json.";
    for (const auto& row : renamed) take(row);
    take_activation();
    take_dropout();
    for (const auto& [field, value] : fixed()) {
      const Json* given = find(field);
      if (given != nullptr && *given != value)
        report(fmt::format("{} is {}; the model has {}", field, shortened(given->dump()), value.dump()));
    }
    for (const auto& item : config_.items()) {
      const std::string& key = item.key();
      if (std::ranges::find(seen_, key) == seen_.end() && std::ranges::find(ignored, key) == ignored.end() &&
          !item.value().is_null())
        report(fmt::format("{} is {}; the model has no such thing", shortened(key), shortened(item.value().dump())));
    }
    if (!findings_.empty()) throw BadInput(joined(findings_, "\n"));
    return result_.dump();
  }

 private:
  void report(const std::string& finding) { findings_.push_back(fmt::format("{}: {}", origin_, finding)); }

  /// nullptr: not there, or null.
  const Json* find(std::string_view field) {
    seen_.emplace_back(field);
    const auto at = config_.find(std::string(field));
    return at == config_.end() || at->is_null() ? nullptr : &*at;
  }

  void take(const Renamed& row) {
    const Json* given = nullptr;
    for (const auto field : row.fields) {
      const Json* value = find(field);
      if (value == nullptr) continue;
      if (given != nullptr && *given != *value)
        report(fmt::format("{} is {}, and another name of it is {}", field, value->dump(), given->dump()));
      given = value;
    }
    if (given != nullptr) result_[std::string(row.key)] = *given;
    if (given == nullptr && row.required) report(fmt::format("{} is missing", row.fields.front()));
  }

  void take_activation() {
    for (const char* field : {"activation_function", "hidden_act"}) {
      const Json* given = find(field);
      if (given == nullptr) continue;
      if (*given == "gelu_new" || *given == "gelu_pytorch_tanh" || *given == "gelu_fast")
        result_["activation"] = "gelu";
      else if (*given == "relu")
        result_["activation"] = "relu";
      else
        report(fmt::format("{} is {}; the model has gelu_new, gelu_pytorch_tanh, gelu_fast and relu", field,
                           shortened(given->dump())));
    }
  }

  void take_dropout() {
    for (const auto field : other_dropouts) {
      const Json* given = find(field);
      if (given != nullptr && *given != 0)
        report(fmt::format("{} is {}; legal is 0, for the model's one dropout is {}", field, shortened(given->dump()),
                           fmt::join(dropouts, ", ")));
    }
    std::vector<std::string> texts;
    for (const auto field : dropouts) {
      const Json* given = find(field);
      const Json value = given == nullptr ? Json(0.1) : *given;  // GPT2Config's
      texts.push_back(fmt::format("{} {}", field, value.dump()));
      if (!result_.contains("dropout")) result_["dropout"] = value;
      if (result_["dropout"] != value) result_["dropout"] = nullptr;
    }
    if (result_["dropout"].is_null())
      report(fmt::format("{}: the model has one dropout for all sites", joined(texts, ", ")));
  }

  std::string origin_;
  Json config_, result_ = Json::object();
  std::vector<std::string> seen_, findings_;
};

}  // namespace

std::string workload_of_hf_config(std::string_view json_text, std::string_view origin) {
  return Translation(json_text, origin).run();
}

}  // namespace shardproof::workload
