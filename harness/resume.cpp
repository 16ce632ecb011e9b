// SPDX-License-Identifier: Apache-2.0
#include "harness/resume.hpp"

#include <deque>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "harness/text.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

bool stays(const Record& record) {
  return record.verdict == Verdict::pass || record.verdict == Verdict::unsupported ||
         (record.verdict == Verdict::skipped && record.judged == "unchecked" && record.injections.empty());
}

}  // namespace

void FolderOptions::declare(Options& options) {
  options.text("--out", out_, "FOLDER", "Where results go (default: ./results/runs/ and the time)")
      .flag("--overwrite", overwrite_, "Replace the run that the folder holds");
  if (resumable_)
    options.flag("--resume", resume_,
                 "Go on with the run that --out holds, if it holds one: only cases that did not pass, or did not run, "
                 "run");
}

void FolderOptions::require_legal() const {
  if (resume_ && out_.empty()) throw BadInput("--resume needs --out: the folder of the run to go on with");
  if (resume_ && overwrite_) throw BadInput("--resume and --overwrite exclude each other");
}

RunFolder FolderOptions::open() const {
  return RunFolder(out_, resume_ ? Existing::resume : overwrite_ ? Existing::overwrite : Existing::refuse);
}

std::string FolderOptions::resuming_line(std::span<const std::string> args, const RunFolder& folder) const {
  std::vector<std::string> words;
  for (const std::string& word : args)
    if (word != "--overwrite" && word != "--resume") words.push_back(word);
  if (out_.empty()) words.insert(words.end(), {"--out", folder.path().string()});
  words.emplace_back("--resume");
  return rerun_line(words);
}

std::vector<std::optional<Record>> resume(RunFolder& folder, std::size_t count,
                                          const std::function<CaseKey(std::size_t)>& key_of,
                                          const Environment& environment) {
  std::vector<std::optional<Record>> result(count);
  const std::vector<Record>& earlier = folder.earlier();
  if (earlier.empty()) return result;
  std::vector<CaseKey> cases;
  std::map<std::pair<std::string, std::string>, std::deque<std::size_t>> left;  // by text and rerun line
  for (std::size_t k = 0; k < count; ++k) {
    const CaseKey& key = cases.emplace_back(key_of(k));
    left[{key.case_text, key.rerun}].push_back(k);
  }
  const std::string records = (folder.path() / "records.jsonl").string();
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < earlier.size(); ++i) {
    const Record& record = earlier[i];
    const auto found = left.find({record.case_text, record.rerun});
    if (found == left.end())
      throw BadInput(fmt::format("--resume: {}:{} is of another run: {}", records, i + 1, record.rerun));
    if (found->second.empty())
      throw BadInput(fmt::format("--resume: {}:{} is one more record of a case than this line has: {}", records, i + 1,
                                 record.rerun));
    const std::size_t at = found->second.front();
    found->second.pop_front();
    if (record.environment != environment)
      throw BadInput(fmt::format("--resume: {} was made elsewhere ({}): --overwrite it, or choose another --out",
                                 records, difference(record.environment, environment)));
    const CaseKey& key = cases[at];
    if (record.fabric != key.fabric ||
        (key.workload_hash && !record.workload_hash.empty() && record.workload_hash != key.workload_hash()))
      throw BadInput(fmt::format("--resume: {}:{} was made when a file of its line held something else: {}", records,
                                 i + 1, record.rerun));
    result[at] = record;
    if (stays(record)) kept.push_back(i);
  }
  folder.keep(kept);
  for (auto& record : result)
    if (record && !stays(*record)) record.reset();
  return result;
}

}  // namespace shardproof::harness
