// SPDX-License-Identifier: Apache-2.0
// Where a candidate keeps the oracle's tensors: renamed, transposed, cut out of fused ones, put together from shards.
//
//   {"files": ["rank-0/step-{step}.safetensors", "rank-1/step-{step}.safetensors"],
//    "tensors": {"token_embedding.weight": "wte.weight",
//                "blocks.*.mlp.up.weight": {"from": "h.*.mlp.c_fc.weight", "transpose": true, "shards": 0},
//                "blocks.*.attention.query.weight": {"from": "h.*.attn.qkv", "dim": 0, "range": [0, 24]},
//                "blocks.*.attention.value.bias": {"join": [SOURCE, SOURCE...], "along": 0}}}
//
// "files" (default: step-{step}.safetensors) are below the candidate's folder; {step} is 0001, 0002, ... A key of
// "tensors" is a parameter of the oracle; one `*` in it stands for any text, and in the names of its value for the
// same. A source is a name, or an object: "from", then "transpose" (of a matrix), then the elements "range" [begin,
// end) of "dim"; "file" is the index of the file that has it (left out: any, and copies in several files must be
// equal). "shards" puts a part from each file together along that dim, "join" those of a list along the dim "along".
// The same applies to the gradient and the states of the parameter. A parameter that no key names has the oracle's
// name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "suites/workload/workload.hpp"

namespace shardproof::harness {

struct Cut {
  std::int64_t dim, begin, end;
};

struct Source {
  std::string name;
  std::optional<std::size_t> file = {};  ///< none: any
  bool transpose = false;
  std::optional<Cut> cut = {};  ///< after the transpose
};

/// One source, or several put together along `dim`.
struct Recipe {
  std::vector<Source> sources;
  std::int64_t dim = 0;
};

struct CandidateMap {
  std::vector<std::string> files = {"step-{step}.safetensors"};
  std::map<std::string, Recipe> tensors;  ///< of every parameter
};

/// Names as the oracle's.
CandidateMap plain_map(const std::vector<workload::Parameter>& parameters);

/// Throws BadInput with every finding, one a line, each starting with `origin`: not JSON, unknown or doubled keys (with
/// the nearest), a parameter that is named twice, a part of the candidate that is used twice.
CandidateMap parse_candidate_map(std::string_view json_text, std::string_view origin,
                                 const std::vector<workload::Parameter>& parameters);

/// The file's name for a step.
std::string file_of_step(const std::string& pattern, std::int64_t step);

}  // namespace shardproof::harness
