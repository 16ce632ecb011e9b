// SPDX-License-Identifier: Apache-2.0
// One record per case: a line of records.jsonl (results/record.schema.json).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/environment.hpp"
#include "harness/fabric.hpp"
#include "harness/verdict.hpp"
#include "kernels/core/track.hpp"

namespace shardproof::harness {

inline constexpr std::string_view record_schema = "shardproof.record/1", summary_schema = "shardproof.summary/1";

/// Names with the unit at the end, in the order in which they are printed.
using Counts = std::vector<std::pair<std::string, std::int64_t>>;
using Figures = std::vector<std::pair<std::string, double>>;

struct Record {
  std::string case_text = {};  ///< the case's printed form: the record's key
  std::string workload = {};   ///< its name
  std::string workload_hash = {};
  std::string strategy = {};  ///< canonical form
  std::int64_t ranks = 1;
  Track track = Track::exact;
  std::string device = "cpu", transport = "threads", contract = "EXACT";
  std::int64_t delays = 0;                   ///< seed of random delays of the ranks; 0: none
  std::vector<std::string> injections = {};  ///< what was to go wrong, as --inject takes it
  Verdict verdict = Verdict::error;
  std::string reason = {};        ///< one sentence; "" only for pass
  std::string judged = {};        ///< "full", "unchecked", or what the judged part was cut to
  std::string digest = {};        ///< 64 hexadecimal digits; "" where there is none
  std::int64_t digest_steps = 0;  ///< the digest is over steps 1 to this one; 0 where there is none
  std::int64_t compared = 0;      ///< elements compared with the oracle
  Counts ledgers = {};            ///< counted: "memory_parameter_peak_bytes"
  Counts forms = {};              ///< predicted, under the name of the ledger that each is held against
  Figures figures = {};           ///< measured; a value that is not finite is written as null
  std::string rerun = {};
  Environment environment = {};
  std::optional<Fabric> fabric = {};  ///< that replays of figures are over; none: exchanges took what they took
};

/// The case as reports name it: with the delays and injections that it ran under, which make it another measurement.
std::string shown_name(const Record& record);

/// NaN where it was not measured.
double figure_of(const Record& record, std::string_view name);

/// The ledger that each form is held against differs: one sentence a line; a form without ledger is one too, and
/// traffic without a form.
std::vector<std::string> disagreements(const Record& record);
/// A pass becomes a fail, with the reason, where there are disagreements.
void hold_to_forms(Record& record);

/// One JSON object in one line, without the newline.
std::string to_json(const Record& record);
/// Throws BadInput with every finding, one a line, each starting with `origin`: not JSON, missing, unknown or doubled
/// keys, wrong types, illegal values.
Record parse_record(std::string_view json_text, std::string_view origin);

}  // namespace shardproof::harness
