// SPDX-License-Identifier: Apache-2.0
#include "suites/workload/hf_config.hpp"

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"
#include "suites/workload/workload.hpp"

namespace shardproof::workload {
namespace {

// The fields of GPT-2's published config.json.
constexpr const char* gpt2 = R"({
  "activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "bos_token_id": 50256,
  "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02, "layer_norm_epsilon": 1e-05,
  "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
  "n_inner": null, "resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1,
  "summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj": true,
  "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257})";

std::string refusal(const std::string& text) {
  try {
    workload_of_hf_config(text, "c");
    return "accepted";
  } catch (const BadInput& error) {
    return error.what();
  }
}

TEST(HfConfig, Gpt2IsTheBuiltInModel) {
  const Workload w = parse(workload_of_hf_config(gpt2, "config.json"), "config.json", {});
  const Workload built_in = load("gpt2-124m");
  EXPECT_EQ(w.layers, built_in.layers);
  EXPECT_EQ(w.hidden, built_in.hidden);
  EXPECT_EQ(w.heads, built_in.heads);
  EXPECT_EQ(w.mlp_hidden, built_in.mlp_hidden);
  EXPECT_EQ(w.vocab, built_in.vocab);
  EXPECT_EQ(w.sequence, built_in.sequence);
  EXPECT_TRUE(w.tied_head);
  EXPECT_EQ(w.activation, Activation::gelu);
  EXPECT_EQ(w.dropout, 0.1);
}

TEST(HfConfig, LaterNamesAreKnown) {
  const Workload w =
      parse(workload_of_hf_config(R"({"hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 6,
                                "num_key_value_heads": 2, "intermediate_size": 17, "max_position_embeddings": 9,
                                "vocab_size": 11, "hidden_act": "relu", "tie_word_embeddings": false,
                                "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0})",
                                  "c"),
            "c", {});
  EXPECT_EQ(w.kv_heads, 2);
  EXPECT_EQ(w.mlp_hidden, 17);
  EXPECT_FALSE(w.tied_head);
  EXPECT_EQ(w.activation, Activation::relu);
}

// A dropout under a name that GPT-2's configs do not have must not be lost: 0 is what all sites have anyway.
TEST(HfConfig, OtherNamesOfDropoutAreRefusedUnlessZero) {
  for (const std::string field :
       {"resid_dropout", "attn_dropout", "embd_dropout", "attention_dropout", "hidden_dropout", "mlp_dropout"}) {
    const auto with = [&](const char* value) { return refusal("{\"" + field + "\": " + value + "," + (gpt2 + 1)); };
    EXPECT_EQ(
        with("0.1"),
        "c: " + field + " is 0.1; legal is 0, for the model's one dropout is resid_pdrop, embd_pdrop, attn_pdrop");
    EXPECT_EQ(with("0"), "accepted");
    EXPECT_EQ(with("0.0"), "accepted");
    EXPECT_EQ(with("null"), "accepted");
  }
}

TEST(HfConfig, WhatTheModelCannotExpressIsNamed) {
  const auto with = [](const std::string& fields) { return refusal(std::string("{") + fields + "," + (gpt2 + 1)); };
  EXPECT_EQ(with(R"("rope_theta": 10000.0)"), "c: rope_theta is 10000.0; the model has no such thing");
  EXPECT_EQ(with(R"("rms_norm_eps": 1e-06)"), "c: rms_norm_eps is 1e-06; the model has no such thing");
  EXPECT_EQ(with(R"("hidden_act": "silu")"),
            "c: hidden_act is \"silu\"; the model has gelu_new, gelu_pytorch_tanh, gelu_fast and relu");
  EXPECT_EQ(with(R"("hidden_size": 5)"), "c: hidden_size is 5, and another name of it is 768");
  EXPECT_EQ(with(R"("scale_attn_by_inverse_layer_idx": true)"),
            "c: scale_attn_by_inverse_layer_idx is true; the model has false");
  EXPECT_EQ(with(R"("is_encoder_decoder": true)"), "c: is_encoder_decoder is true; the model has false");
  EXPECT_EQ(refusal(R"({"n_embd": 4, "n_head": 2, "n_layer": 1, "vocab_size": 3, "n_positions": 4, "n_ctx": 5,
                        "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0})"),
            "c: n_ctx is 5, and another name of it is 4");
  EXPECT_EQ(with(R"("n_layer": 3)"), "c: n_layer is given more than once");
  EXPECT_EQ(refusal(R"({"n_embd": 4, "n_head": 2, "n_layer": 1, "vocab_size": 3, "n_positions": 4, "attn_pdrop": 0})"),
            "c: resid_pdrop 0.1, embd_pdrop 0.1, attn_pdrop 0: the model has one dropout for all sites");
  EXPECT_EQ(refusal(R"({"model_type": "llama"})"),
            "c: n_layer is missing\nc: n_embd is missing\nc: n_head is missing\nc: vocab_size is missing\n"
            "c: n_positions is missing\nc: model_type is \"llama\"; the model has \"gpt2\"");
  EXPECT_NE(refusal("[1]").find("one JSON object"), std::string::npos);
  EXPECT_NE(refusal("{").find("c: "), std::string::npos);
}

}  // namespace
}  // namespace shardproof::workload
