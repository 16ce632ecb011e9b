// SPDX-License-Identifier: Apache-2.0
#include "harness/ranking.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace shardproof::harness {
namespace {

Record record(const std::string& strategy, std::int64_t ranks, double low, double median, double high) {
  Record r{.case_text = strategy, .workload = "tiny", .strategy = strategy, .ranks = ranks, .track = Track::native};
  r.workload_hash = std::string(64, '0');
  r.verdict = Verdict::pass;
  r.judged = "full";
  r.figures = {{"tokens_per_second_lower_quartile", low},
               {"tokens_per_second_median", median},
               {"tokens_per_second_upper_quartile", high}};
  r.ledgers = {{"rank0_memory_total_peak_bytes", 1024}, {"rank1_memory_total_peak_bytes", 4096}};
  return r;
}

/// Of the line that begins with the strategy.
std::string line_of(const std::string& text, const std::string& strategy) {
  const auto begin = text.find("\n" + strategy + " ") + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(Ranking, IsByTheMedianAndNamesWhatCannotBeToldApart) {
  const auto text = ranking(std::vector{record("dp1", 1, 90, 100, 110), record("dp2", 2, 150, 160, 170),
                                        record("tp2", 2, 165, 180, 190), record("pp2", 2, 120, 130, 164)});
  const auto tp2 = text.find("\ntp2 "), dp2 = text.find("\ndp2 "), pp2 = text.find("\npp2 "), dp1 = text.find("\ndp1 ");
  EXPECT_LT(tp2, dp2);
  EXPECT_LT(dp2, pp2);
  EXPECT_LT(pp2, dp1);
  EXPECT_NE(line_of(text, "dp2").find("not to be told from the first"), std::string::npos);
  EXPECT_EQ(line_of(text, "pp2").find("not to be told"), std::string::npos);
  EXPECT_NE(line_of(text, "dp2").find("0.80"), std::string::npos);  // 160 / 2 / 100
  EXPECT_NE(line_of(text, "dp2").find("4.00 KiB"), std::string::npos);
}

TEST(Ranking, TakesAllRecordsOfACase) {
  const auto text = ranking(std::vector{record("dp1", 1, 90, 100, 110), record("dp1", 1, 80, 90, 95)});
  EXPECT_NE(line_of(text, "dp1").find("95"), std::string::npos) << text;
  EXPECT_NE(line_of(text, "dp1").find("80 to 110"), std::string::npos);
}

TEST(Ranking, DoesNotRankWhatWasNotChecked) {
  auto slow = record("dp1", 1, 1, 2, 3), fast = record("dp2", 2, 5, 6, 7);
  for (Record* r : {&slow, &fast}) r->judged = "unchecked", r->verdict = Verdict::skipped;
  const auto text = ranking(std::vector{slow, fast});
  EXPECT_LT(text.find("\ndp1 "), text.find("\ndp2 "));
  EXPECT_NE(text.find("not ranked"), std::string::npos);
}

TEST(Ranking, SaysWhyOthersAreMissing) {
  auto refused = record("sync=x", 2, 1, 1, 1);
  refused.figures.clear(), refused.verdict = Verdict::unsupported, refused.reason = "because";
  EXPECT_EQ(ranking(std::vector{refused}), "unsupported  sync=x  because\n");
  EXPECT_EQ(ranking({}), "");
}

}  // namespace
}  // namespace shardproof::harness
