// SPDX-License-Identifier: Apache-2.0
#include "harness/fabric.hpp"

#include <gtest/gtest.h>

#include "harness/record.hpp"
#include "harness/report_csv.hpp"
#include "harness/report_data.hpp"
#include "harness/report_html.hpp"
#include "harness/report_table.hpp"
#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_fabric(text, "f");
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Fabric, IsReadFromAFile) {
  const Fabric example = load_fabric(SHARDPROOF_SOURCE "/scripts/examples/fabric.json");
  EXPECT_EQ(example, (Fabric{"100 Gbit/s and 5 us", 5e-6, 12.5e9}));
  EXPECT_EQ(to_text(example), "100 Gbit/s and 5 us (5 us, 12.5 GB/s)");
  EXPECT_THROW(load_fabric("/missing"), BadInput);
}

TEST(Fabric, EveryFindingAtOnce) {
  EXPECT_EQ(refusal(R"({"name": "", "latency_second": 1e-6, "latency_seconds": -1, "bytes_per_second": "fast"})"),
            "f: \"name\" must be of 1 to 64 bytes without control characters\n"
            "f: \"latency_seconds\" is -1: 0 to 1 is legal\n"
            "f: \"bytes_per_second\" must be a number, not string\n"
            "f: unknown key \"latency_second\": did you mean \"latency_seconds\"?");
  for (const char* bytes : {"0", "999", "1.1e15", "-1e9"})
    EXPECT_EQ(refusal(R"({"name": "n", "latency_seconds": 0, "bytes_per_second": )" + std::string(bytes) + "}")
                  .find("f: \"bytes_per_second\" is "),
              0u)
        << bytes;
  EXPECT_EQ(refusal(R"({"name": "n", "latency_seconds": 1, "bytes_per_second": 1000})"), "accepted");
  EXPECT_NE(refusal(R"({"name": "a\nb", "latency_seconds": 1, "bytes_per_second": 1000})"), "accepted");
  EXPECT_NE(refusal("[]"), "accepted");
  EXPECT_NE(refusal(R"({"name": "n", "name": "n", "latency_seconds": 1, "bytes_per_second": 1000})"), "accepted");
}

Record over(const std::optional<Fabric>& fabric) {
  Record r{.case_text = "tiny | pp2 schedule=gpipe | 2 ranks | native | cpu | threads",
           .workload = "tiny",
           .workload_hash = std::string(64, 'a'),
           .strategy = "pp2 schedule=gpipe",
           .ranks = 2,
           .track = Track::native,
           .verdict = Verdict::pass,
           .judged = "full",
           .compared = 7,
           .figures = {{"bubble_formula_fraction", 0.5}, {"bubble_replay_fraction", 0.6}},
           .rerun = "shardproof run",
           .environment = environment(),
           .fabric = fabric};
  for (const std::string kind : {"tokens_per_second", "tokens_per_second_replay"})
    for (const char* part : {"_lower_quartile", "_median", "_upper_quartile"}) r.figures.emplace_back(kind + part, 7);
  return r;
}

TEST(Fabric, ComesBackFromARecord) {
  const Fabric fabric{"slow <b>", 1e-3, 1e6};
  EXPECT_EQ(parse_record(to_json(over(fabric)), "r").fabric, fabric);
  EXPECT_FALSE(parse_record(to_json(over({})), "r").fabric);
  EXPECT_EQ(to_json(over({})).find("\"fabric\""), std::string::npos);
  std::string text = to_json(over(fabric));
  const std::string right = "\"bytes_per_second\":1000000.0";
  ASSERT_NE(text.find(right), std::string::npos) << text;
  text.replace(text.find(right), right.size(), "\"bytes_per_second\":0");
  try {
    parse_record(text, "r");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "r: fabric: \"bytes_per_second\" is 0: 1000 to 1e+15 is legal");
  }
}

TEST(Fabric, NoReplayIsShownWithoutIt) {
  const Record slow = over(Fabric{"slow <b>", 1e-3, 1e6}), none = over({});
  const std::string table = table_of(std::vector{slow, none});
  EXPECT_NE(table.find("replay over slow <b> (1000 us, 0.001 GB/s))"), std::string::npos) << table;
  EXPECT_NE(table.find("tiny, native, by tokens/s (wall)\n"), std::string::npos) << "apart: " << table;
  ReportData data;
  data.add(slow);
  const std::string html = report_html(data), shown = "cpu; replay over slow &lt;b&gt; (1000 us, 0.001 GB/s)";
  for (const char* section : {"<h2>Throughput", "<caption>Tokens/s", "<h2>Pipeline bubble"}) {
    const auto at = html.find(section);
    ASSERT_NE(at, std::string::npos) << section;
    EXPECT_NE(html.find(shown, at), std::string::npos) << section;
  }
  EXPECT_NE(report_csv(data).find(",\"slow <b> (1000 us, 0.001 GB/s)\""), std::string::npos) << report_csv(data);
  data = {};
  data.add(none);
  EXPECT_EQ(report_html(data).find("replay over"), std::string::npos);
  EXPECT_EQ(report_csv(data).find("fabric"), std::string::npos);
}

}  // namespace
}  // namespace shardproof::harness
