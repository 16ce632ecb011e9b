// SPDX-License-Identifier: Apache-2.0
#include "harness/resume.hpp"

#include <algorithm>

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
  for (std::size_t k = 0; k < count; ++k) cases.push_back(key_of(k));
  const std::string records = (folder.path() / "records.jsonl").string();
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < earlier.size(); ++i) {
    const Record& record = earlier[i];
    const auto is_its = [&](const CaseKey& key) {
      return key.case_text == record.case_text && key.rerun == record.rerun;
    };
    auto at = std::ranges::find_if(cases, is_its);
    while (at != cases.end() && result[static_cast<std::size_t>(at - cases.begin())])
      at = std::find_if(at + 1, cases.end(), is_its);
    if (at == cases.end() && std::ranges::any_of(cases, is_its))
      throw BadInput(fmt::format("--resume: {}:{} is one more record of a case than this line has: {}", records, i + 1,
                                 record.rerun));
    if (at == cases.end())
      throw BadInput(fmt::format("--resume: {}:{} is of another run: {}", records, i + 1, record.rerun));
    if (record.environment != environment)
      throw BadInput(fmt::format("--resume: {} was made elsewhere ({}): --overwrite it, or choose another --out",
                                 records, difference(record.environment, environment)));
    if (record.fabric != at->fabric ||
        (at->workload_hash && !record.workload_hash.empty() && record.workload_hash != at->workload_hash()))
      throw BadInput(fmt::format("--resume: {}:{} was made when a file of its line held something else: {}", records,
                                 i + 1, record.rerun));
    result[static_cast<std::size_t>(at - cases.begin())] = record;
    if (stays(record)) kept.push_back(i);
  }
  folder.keep(kept);
  for (auto& record : result)
    if (record && !stays(*record)) record.reset();
  return result;
}

}  // namespace shardproof::harness
