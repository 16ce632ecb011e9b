// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace shardproof::harness {

/// What the path holds, in a few words ("a workload of 7 layers"). Kinds are told apart by name: a folder of a run,
/// .jsonl records, .json a workload, .safetensors tensors. Throws BadInput with every finding, one a line, each starting
/// with the path.
std::string validate(const std::filesystem::path& path);

}  // namespace shardproof::harness
