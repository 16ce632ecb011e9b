// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace shardproof::workload {

/// A GPT-2-like config.json of Hugging Face's transformers as the text of a workload file. Throws BadInput with every
/// finding, one a line: not JSON, doubled keys, a field that the model cannot express (rotary positions, gated MLP, RMS
/// norm, other activations, dropout that differs by site), unknown fields, missing sizes.
std::string workload_of_hf_config(std::string_view json_text, std::string_view origin);

}  // namespace shardproof::workload
