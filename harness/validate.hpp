// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace shardproof::harness {

/// What the path holds, in a few words ("a run of 3 records, exit code 1"). Every case of a suite must be readable; an
/// interrupted run needs no record. Kinds are told apart by name: a folder of a run or
/// export, .jsonl records, .json a workload or a suite, .safetensors tensors; those of an export must be of the
/// workload with that hash, if one is given. Throws BadInput with every finding, one a line, each starting with the
/// path.
std::string validate(const std::filesystem::path& path, const std::string& workload_hash = "");

}  // namespace shardproof::harness
