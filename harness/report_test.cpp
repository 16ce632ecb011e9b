// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <clocale>
#include <cmath>
#include <filesystem>
#include <limits>
#include <locale>
#include <random>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "harness/csv.hpp"
#include "harness/held.hpp"
#include "harness/html.hpp"
#include "harness/report_benchmark.hpp"
#include "harness/report_chart.hpp"
#include "harness/report_csv.hpp"
#include "harness/report_files.hpp"
#include "harness/report_html.hpp"
#include "harness/report_table.hpp"
#include "harness/run_report.hpp"
#include "kernels/core/errors.hpp"
#include "kernels/core/files.hpp"

namespace shardproof::harness {
namespace {

namespace fs = std::filesystem;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Environment small_machine() {
  Environment e;
  e.host = "h", e.processor = "p", e.cores = 2, e.memory_bytes = 1 << 30, e.commit = "c0";
  return e;
}

Record measured(const std::string& strategy, std::int64_t ranks, double wall, double spread = 1, double replay = nan) {
  Record r{.case_text = "tiny | " + strategy + " | " + std::to_string(ranks) + " ranks | native | cpu | threads",
           .workload = "tiny",
           .strategy = strategy,
           .ranks = ranks,
           .track = Track::native,
           .verdict = Verdict::pass,
           .judged = "full",
           .compared = 7,
           .figures = {{"tokens_per_second_lower_quartile", wall - spread},
                       {"tokens_per_second_median", wall},
                       {"tokens_per_second_upper_quartile", wall + spread},
                       {"step_seconds_median", 1 / wall}},
           .rerun = "shardproof run",
           .environment = small_machine()};
  if (std::isnan(replay)) return r;
  r.figures.insert(r.figures.end(), {{"tokens_per_second_replay_lower_quartile", replay - spread},
                                     {"tokens_per_second_replay_median", replay},
                                     {"tokens_per_second_replay_upper_quartile", replay + spread}});
  return r;
}

/// All that could end a tag, a row or a string.
Record hostile() {
  Record r = measured("dp1", 1, 1234567.25);
  r.case_text = "a\"b<c>&'d | dp1 | 1 rank | exact | cpu | threads";
  r.verdict = Verdict::fail;
  r.reason = "</pre><script>x</script> & \"quoted\", 'so',\r\nnext \x01 line; gr\xc3\xbc\xc3\x9f \xff";
  r.ledgers = {{"memory_parameter_peak_bytes", 5}, {"traffic_tp_all_reduce_x<y_wire_bytes", 3}, {"odd\",\n", 1}};
  r.forms = {{"memory_parameter_peak_bytes", 6}};
  r.figures.insert(r.figures.end(), {{"unknown<figure>", 0.1}, {"not_finite", nan}, {"huge", 1e300}, {"minus", -0.0}});
  return r;
}

ReportData data_of(const std::vector<Record>& records) {
  ReportData data;
  for (const Record& record : records) data.add(record);
  return data;
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t times = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++times;
  return times;
}

TEST(ReportHtml, HostileTextStaysText) {
  const std::string page = report_html(data_of({hostile()}));
  EXPECT_EQ(page.find("<script"), page.npos);
  EXPECT_NE(page.find("&lt;/pre&gt;&lt;script&gt;x&lt;/script&gt; &amp; &quot;quoted&quot;"), page.npos);
  EXPECT_NE(page.find("gr\xc3\xbc\xc3\x9f ?"), page.npos);
  EXPECT_NE(page.find("data-figure=\"unknown&lt;figure&gt;\" data-value=\"0.1\""), page.npos);
  EXPECT_NE(page.find("data-figure=\"not_finite\" data-value=\"null\">not finite<"), page.npos);
  EXPECT_NE(page.find("data-figure=\"huge\" data-value=\"1e+300\""), page.npos);
  EXPECT_EQ(page.find("http:"), page.npos) << "no network";
  EXPECT_EQ(page.find("https:"), page.npos) << "no network";
  EXPECT_EQ(page.find(" src="), page.npos);
  EXPECT_EQ(count(page, "<svg"), count(page, "</svg>"));
  EXPECT_EQ(count(page, "<tr>"), count(page, "</tr>"));
}

TEST(ReportHtml, FailuresComeFirstWithReasonAndRerun) {
  Record bad = hostile();
  bad.rerun = "shardproof run --again";
  const std::string page = report_html(data_of({measured("dp1", 1, 100), measured("dp2", 2, 150), bad}));
  EXPECT_LT(page.find("data-verdict=\"fail\""), page.find("data-verdict=\"pass\""));
  EXPECT_NE(page.find("<code>shardproof run --again</code>"), page.npos);
  EXPECT_NE(page.find("data-count=\"pass\" data-value=\"2\""), page.npos);
  EXPECT_NE(page.find("data-count=\"fail\" data-value=\"1\""), page.npos);
  EXPECT_NE(page.find("<td class=\"differs\">differs</td>"), page.npos) << "a ledger that differs from its form";
  EXPECT_NE(page.find("Measured, but not ranked"), page.npos);
}

TEST(ReportHtml, NothingRanIsSaid) {
  ReportData data;
  data.runs.push_back({"f", "shardproof check <x>", 130});
  const std::string page = report_html(data);
  EXPECT_NE(page.find("No case ended"), page.npos);
  EXPECT_NE(page.find("exit code 130"), page.npos);
  EXPECT_NE(page.find("check &lt;x&gt;"), page.npos);
  EXPECT_EQ(nlohmann::json::parse(benchmark_json(data))["benchmarks"].size(), 0u);
  EXPECT_EQ(table_of(data), "");
  EXPECT_EQ(report_csv(data), "\r\n");
}

TEST(ReportHtml, OfManyCasesTheTellingOnesAreDetailed) {
  std::vector<Record> records(2500, measured("dp2", 2, 100));
  for (Record& r : records) r.figures = {{"seconds", 1}}, r.ledgers = r.forms = {{"memory_parameter_peak_bytes", 5}};
  records[2400] = hostile();
  const ReportData data = data_of(records);
  const std::string page = report_html(data);
  EXPECT_EQ(count(page, "data-verdict=\""), 2500u);
  EXPECT_NE(page.find("data-case=\"2401\" data-ledger=\"memory_parameter_peak_bytes\" data-value=\"5\""), page.npos);
  EXPECT_EQ(count(page, "data-ledger=\"memory_parameter_peak_bytes\""), 200u);
  EXPECT_NE(page.find("of the 200 most telling cases of 2500"), page.npos);
  EXPECT_EQ(data.without_ledgers(), 499) << "all beyond 2000 but the one that failed";
  EXPECT_NE(page.find("Ledgers of 499 passing cases are in records.jsonl only"), page.npos);
  EXPECT_LT(page.size(), 4u << 20);
  EXPECT_EQ(count(report_csv(data), "\r\n"), 2501u - 0 + 1) << "one line end stands in the reason";
}

TEST(ReportCsv, HostileTextStaysInItsCell) {
  const std::string text = report_csv(data_of({hostile(), measured("dp2", 2, 0.1)}));
  EXPECT_NE(text.find("\"a\"\"b<c>&'d | dp1"), text.npos);
  EXPECT_NE(text.find("& \"\"quoted\"\", 'so',\r\nnext"), text.npos);
  EXPECT_NE(text.find(",not_finite,"), text.npos) << "what needs no quotes has none";
  EXPECT_NE(text.find(",0.1,nan,1e+300,-0,"), text.npos);
  EXPECT_NE(text.find("\"odd\"\",\n\""), text.npos);
  EXPECT_NE(text.find(",form_memory_parameter_peak_bytes,"), text.npos);
  EXPECT_EQ(csv_field(std::string_view("a\0b", 3)), "ab");
  EXPECT_EQ(csv_field("a\rb"), "\"a\rb\"");
  EXPECT_EQ(csv_field(""), "");
}

TEST(ReportBenchmark, HasWhatCompareReads) {
  Record twice = measured("dp2", 2, 4), unchecked = measured("dp4", 4, 8), check = measured("tp2", 2, 1);
  twice.figures.emplace_back("name", 3);  // must not replace a key of the format
  twice.figures.emplace_back("not_finite", nan);
  unchecked.verdict = Verdict::skipped, unchecked.reason = "not judged";
  check.figures = {};
  const auto whole = nlohmann::json::parse(benchmark_json(data_of({twice, hostile(), unchecked, check, twice})));
  EXPECT_EQ(whole["context"]["host_name"], "h");
  EXPECT_EQ(whole["context"]["num_cpus"], 2);
  EXPECT_EQ(whole["context"]["library_build_type"], "debug");
  Record optimized = twice;
  optimized.environment.flags = "-O2 -g -DNDEBUG";
  EXPECT_EQ(nlohmann::json::parse(benchmark_json(data_of({optimized})))["context"]["library_build_type"], "release");
  const auto& all = whole["benchmarks"];
  ASSERT_EQ(all.size(), 4u) << "a case that was not timed is none";
  for (const auto& b : all)
    for (const char* key : {"name", "run_name", "run_type", "iterations", "real_time", "cpu_time", "time_unit"})
      EXPECT_TRUE(b.contains(key)) << key;
  EXPECT_EQ(all[0]["name"], twice.case_text);
  EXPECT_EQ(all[0]["real_time"], 0.25e9);
  EXPECT_EQ(all[0]["time_unit"], "ns");
  EXPECT_EQ(all[0]["repetitions"], 2);
  EXPECT_EQ(all[0]["repetition_index"], 0);
  EXPECT_EQ(all[3]["repetition_index"], 1);
  EXPECT_EQ(all[0]["tokens_per_second_median"], 4.0);
  EXPECT_FALSE(all[0].contains("not_finite"));
  EXPECT_EQ(all[1]["error_occurred"], true);
  EXPECT_EQ(all[1]["real_time"], 0.0) << "no time of a case that failed";
  EXPECT_EQ(all[2]["label"], "cpu, not judged");
}

TEST(ReportData, EfficiencyIsOfTheFastestComparableRank) {
  Record other = measured("dp1", 1, 1000);
  other.device = "cuda";
  Record failed = measured("dp1", 1, 900);
  failed.verdict = Verdict::fail;
  Record far = measured("dp1", 1, 800);
  far.environment.commit = "c1";
  const ReportData data = data_of({measured("dp1", 1, 50, 1, 60), measured("dp1 attention=tiled", 1, 100, 1, 110),
                                   other, failed, far, measured("dp4", 4, 200, 20, 440)});
  const ReportedCase& four = data.cases().back();
  const Spread wall = data.efficiency(four, Rate::wall), replay = data.efficiency(four, Rate::replay);
  EXPECT_DOUBLE_EQ(wall.median, 0.5);
  // One rank's 99 to 101 adds little to 180 to 220: 0.45 to 0.55 by the latter alone.
  EXPECT_NEAR(wall.lower, 0.45, 3e-4);
  EXPECT_NEAR(wall.upper, 0.55, 3e-4);
  EXPECT_LT(wall.lower, 0.45);
  EXPECT_GT(wall.upper, 0.55);
  EXPECT_DOUBLE_EQ(replay.median, 1);
  EXPECT_EQ(data.environments().size(), 2u);
  EXPECT_FALSE(data_of({measured("dp4", 4, 1)}).efficiency(data.cases()[0], Rate::wall).measured());
}

TEST(ReportData, EfficiencyHasTheSpreadOfBoth) {
  const auto of_dp2 = [](double one_spread, double spread) {
    const ReportData data = data_of({measured("dp1", 1, 100, one_spread), measured("dp2", 2, 100, spread)});
    return data.efficiency(data.cases()[1], Rate::wall);
  };
  const Spread one_varies = of_dp2(20, 0), both = of_dp2(20, 20);
  EXPECT_DOUBLE_EQ(one_varies.lower, 100 / 120.0 / 2) << "low where one rank is fast";
  EXPECT_DOUBLE_EQ(one_varies.upper, 100 / 80.0 / 2);
  EXPECT_LT(both.lower, one_varies.lower);
  EXPECT_GT(both.lower, 80 / 120.0 / 2) << "both are seldom at their worst together";
  EXPECT_GT(both.upper, one_varies.upper);
  EXPECT_LT(both.upper, 120 / 80.0 / 2);
  const ReportData data = data_of({measured("dp1", 1, 100, 20)});
  const Spread itself = data.efficiency(data.cases()[0], Rate::wall);
  EXPECT_DOUBLE_EQ(itself.lower, 0.8) << "its own spread, once";
  EXPECT_DOUBLE_EQ(itself.upper, 1.2);
}

TEST(ReportData, QuartilesOfARatioAreThoseOfItsSample) {
  constexpr std::size_t n = 100000;
  constexpr double sigma_a = 0.3, sigma_b = 0.2;
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  std::vector<double> ratios;
  for (std::size_t k = 0; k < n; ++k) ratios.push_back(std::exp(sigma_a * normal(random) - sigma_b * normal(random)));
  std::ranges::sort(ratios);
  constexpr double quartile = 0.67448975;  // of the standard normal distribution
  const auto spread = [](double sigma) { return Spread{std::exp(-quartile * sigma), 1, std::exp(quartile * sigma)}; };
  const Spread found = ratio(spread(sigma_a), spread(sigma_b));
  // A sample's quartile has the standard error sqrt(p (1 - p) / n) / density, p = 1/4, of logarithms here; the density
  // there is 0.3178 / sigma. Five of them.
  const double within = 5 * std::sqrt(3.0 / 16 / n) / 0.3178 * std::hypot(sigma_a, sigma_b);
  EXPECT_NEAR(std::log(found.lower), std::log(ratios[n / 4]), within);
  EXPECT_NEAR(std::log(found.upper), std::log(ratios[3 * n / 4]), within);
}

TEST(ReportData, OneRankIsRepeatedAndUndisturbed) {
  std::vector<Record> records = {measured("dp1", 1, 100, 0), measured("dp1", 1, 140, 0), measured("dp1", 1, 110, 0),
                                 measured("dp2", 2, 110, 0)};
  EXPECT_DOUBLE_EQ(data_of(records).efficiency(data_of(records).cases()[3], Rate::wall).median, 0.5)
      << "the middle run, not the luckiest";
  records[1].injections = {"slow:rank=0,factor=0.5"};
  records[1].rerun += " --inject slow:rank=0,factor=0.5";
  const ReportData data = data_of(records);
  const Spread found = data.efficiency(data.cases()[3], Rate::wall);
  EXPECT_DOUBLE_EQ(found.median, 110 / 105.0 / 2);
  EXPECT_DOUBLE_EQ(found.lower, 110 / 110.0 / 2) << "the outermost of both runs";
}

TEST(ReportHtml, ChartsHaveAPointForEachCase) {
  const auto page = [](const std::vector<Record>& records) { return report_html(data_of(records)); };
  const auto one = measured("dp1", 1, 100), two = measured("dp2", 2, 180), again = measured("dp2", 2, 190);
  // Throughput and efficiency, wall alone: a point for each case in both.
  EXPECT_EQ(count(page({one, two, again, again}), "<circle cx="), 4u);
  EXPECT_NE(page({one, two, again, again}).find("<title>dp, wall: 190 at 2</title>"), std::string::npos);
  EXPECT_EQ(page({one, two}).find("class=\"hollow\""), std::string::npos);
  EXPECT_NE(page({one, two}).find("Throughput: tiny, native, cpu, p with 2 cores"), std::string::npos);
  // On two cores: in both charts one hollow point of the wall, none of the replay, and what it means.
  const std::string crowd = page({measured("dp1", 1, 100, 1, 100), measured("dp4", 4, 180, 1, 380)});
  EXPECT_EQ(count(crowd, "<circle class=\"hollow\" cx="), 2u + 2u);
  EXPECT_EQ(count(crowd, "wall, more ranks than processors</li>"), 2u);
  EXPECT_NE(crowd.find("dp, wall: 180 at 4, more ranks than processors</title>"), crowd.npos);
  EXPECT_NE(crowd.find("dp, replay: 380 at 4</title>"), crowd.npos);
}

TEST(ReportData, FamiliesDifferInTheirSizes) {
  EXPECT_EQ(family_of("dp2 pp4 schedule=gpipe microbatches=4"), "dp pp schedule=gpipe microbatches=4");
  EXPECT_EQ(family_of("dp1 tp16"), "tp");
  EXPECT_EQ(family_of("dp1"), "");
}

TEST(ReportTable, RanksWithPlacesAndSaysWhyNot) {
  Record refused = measured("tp3", 2, 1);
  refused.verdict = Verdict::unsupported, refused.reason = "3 does not divide 4 heads";
  const std::string text = table_of(
      std::vector{measured("dp2", 2, 100, 2), measured("tp2", 2, 200, 2), measured("pp2", 2, 103, 2), refused});
  const auto at = [&](const char* part) { return text.find(part); };
  EXPECT_LT(at("1      tp2"), at("2-3    pp2")) << text;
  EXPECT_LT(at("2-3    pp2"), at("2-3    dp2")) << text;
  EXPECT_LT(at("2-3    dp2"), at("unsupported: 3 does not divide 4 heads")) << text;
  EXPECT_NE(at("indistinguishable"), text.npos);
  EXPECT_NE(at("by tokens/s (wall)"), text.npos);
  EXPECT_NE(at("200 (198 to 202)"), text.npos);
  EXPECT_EQ(table_of(std::vector{measured("dp2", 2, 100), measured("tp2", 2, 200)}).find("indistinguishable"),
            text.npos);
}

TEST(ReportTable, MoreRanksThanProcessorsAreRankedByReplay) {
  const std::vector crowd = {measured("dp2", 2, 100, 1, 150), measured("dp4", 4, 50, 1, 300)};
  const std::string text = table_of(crowd);
  EXPECT_NE(text.find("replay, for there are more ranks than processors"), text.npos) << text;
  EXPECT_LT(text.find("dp4"), text.find("dp2")) << text;
  const std::string wall = table_of(std::vector{crowd[0], measured("dp4", 4, 50)});
  EXPECT_NE(wall.find("(wall)"), wall.npos) << "kinds are never mixed";
}

TEST(ReportTable, EfficiencyAndBubbleAreOfTheKindThatRanks) {
  std::vector one_two = {measured("dp1", 1, 100, 1, 100), measured("pp2", 2, 180, 1, 150)};
  one_two[0].ledgers = {{"memory_total_peak_bytes", 5 << 20}};
  one_two[1].ledgers = {{"rank0_memory_total_peak_bytes", 2 << 20}, {"rank1_memory_total_peak_bytes", 3 << 20}};
  one_two[1].figures.insert(one_two[1].figures.end(),
                            {{"bubble_wall_fraction", 0.25}, {"bubble_replay_fraction", 0.125}});
  const std::string wall = table_of(one_two);
  EXPECT_NE(wall.find("efficiency (wall)  bubble (wall)  peak memory of a rank\n"), wall.npos) << wall;
  EXPECT_NE(wall.find("90.0 %             25.0 %         3.00 MiB\n"), wall.npos) << wall;
  EXPECT_NE(wall.find("100.0 %            -              5.00 MiB\n"), wall.npos) << wall;
  for (Record& r : one_two) r.environment.cores = 1;
  const std::string replay = table_of(one_two);
  EXPECT_NE(replay.find("efficiency (replay)  bubble (replay)  peak memory of a rank\n"), replay.npos) << replay;
  EXPECT_NE(replay.find("75.0 %               12.5 %           3.00 MiB\n"), replay.npos) << replay;
  one_two.erase(one_two.begin());
  const std::string alone = table_of(one_two);
  EXPECT_NE(alone.find("-                    12.5 %"), alone.npos) << "no one rank to compare with: " << alone;
  one_two.push_back(one_two[0]);
  one_two[1].ledgers[1].second = 4 << 20;
  one_two[1].figures.back().second = 0.375;
  const std::string twice = table_of(one_two);
  EXPECT_NE(twice.find("25.0 %           4.00 MiB               2\n"), twice.npos) << twice;
}

TEST(Report, RunsOfOneCaseAreOneRow) {
  const std::vector<Record> runs = {measured("dp2", 2, 108), measured("tp2", 2, 110), measured("dp2", 2, 100),
                                    measured("dp2", 2, 104)};
  const std::string text = table_of(runs);
  EXPECT_EQ(count(text, "dp2"), 1u) << text;
  EXPECT_NE(text.find("104 (99 to 109)"), text.npos) << text;
  EXPECT_NE(text.find("several runs"), text.npos) << text;
  EXPECT_EQ(count(text, "1-2"), 3u) << text << "both places, and the note: 109 is also tp2's lower quartile";
  const std::string apart = table_of(std::vector{runs[1], runs[2], runs[3]});
  EXPECT_EQ(count(apart, "1-2"), 0u) << apart << "105 is below 109";
  EXPECT_NE(apart.find("102 (99 to 105)"), apart.npos) << apart << "between the two";
  EXPECT_EQ(table_of(std::vector{runs[0], runs[1]}).find("runs"), text.npos);
  std::vector<Record> slowed = {runs[0], runs[2]};
  slowed[1].injections = {"slow:rank=1,factor=3"};
  slowed[1].rerun += " --inject slow:rank=1,factor=3";
  EXPECT_NE(table_of(slowed).find("dp2 | slow:rank=1,factor=3"), text.npos) << "another measurement, another row";
  EXPECT_EQ(count(table_of(slowed), "dp2"), 2u);
}

TEST(RunReport, AnMfuAboveOneIsAFigureWithAWarning) {
  Record record = measured("dp1", 1, 100);
  EXPECT_EQ(mfu_warning(record), "");
  record.figures.insert(record.figures.end(), {{"mfu", 1}, {"peak_flops_per_second", 180.4e9}});
  EXPECT_EQ(mfu_warning(record), "");
  record.figures[record.figures.size() - 2].second = 1.125;
  EXPECT_EQ(mfu_warning(record),
            "the MFU is 112.5 %: the measured peak, 180.4 GFLOP/s a rank, is below what the training reached");
  EXPECT_NE(table_of(std::vector{record}).find("1      dp1"), std::string::npos) << "ranked like any other";
}

TEST(Report, NoLocaleChangesANumber) {
  const ReportData data = data_of({hostile(), measured("dp2", 2, 1234567.5, 0.25)});
  const auto all = [&] { return report_html(data) + report_csv(data) + benchmark_json(data) + table_of(data); };
  const std::string before = all();
  struct German : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale old = std::locale::global(std::locale(std::locale::classic(), new German));
  const std::string c_locale = std::setlocale(LC_ALL, nullptr);
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8"})
    if (std::setlocale(LC_ALL, name) != nullptr) break;
  const std::string after = all();
  std::setlocale(LC_ALL, c_locale.c_str());
  std::locale::global(old);
  EXPECT_EQ(before, after);
  EXPECT_NE(before.find("1234567.5"), before.npos);
}

TEST(Held, PartsOfTrafficAndTheLargestRank) {
  const TrafficName name = traffic_name("traffic_tp_reduce_scatter_mlp_row_output_wire_bytes");
  EXPECT_EQ(name.axis + "|" + name.kind + "|" + name.purpose, "tp|reduce_scatter|mlp_row_output");
  const TrafficName strange = traffic_name("traffic_x");
  EXPECT_EQ(strange.axis + "|" + strange.kind + "|" + strange.purpose, "x||");
  Record r = measured("dp2", 2, 1);
  r.ledgers = {{"rank0_memory_a_bytes", 3}, {"rank1_memory_a_bytes", 9}, {"ranks_memory_a_bytes", 1}};
  r.forms = {{"rank0_memory_a_bytes", 3}, {"rank1_memory_a_bytes", 8}};
  const auto all = held(r, "memory_", "_bytes");
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].counted, (std::vector<std::int64_t>{3, 9}));
  EXPECT_FALSE(all[0].equal);
}

class ReportFiles : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) / ("report_test." + std::to_string(getpid()));
    fs::create_directories(root_);
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string folder(const std::string& name, const std::string& records, const std::string& trace = "") {
    fs::create_directories(root_ / name);
    write_file(root_ / name / "records.jsonl", records);
    if (!trace.empty()) write_file(root_ / name / "trace.json", trace);
    return (root_ / name).string();
  }
  static std::string line(Record record) {
    record.case_text = "tiny | dp1 | 1 rank | native | cpu | threads";
    return to_json(record) + "\n";
  }
  static std::string refusal(const std::vector<std::string>& folders, bool mixed = false) {
    try {
      read_reported(folders, mixed);
    } catch (const BadInput& error) {
      return error.what();
    }
    return "accepted";
  }

  fs::path root_;
};

TEST_F(ReportFiles, RefuseAllThatIsWrongAtOnce) {
  const std::string good = line(measured("dp1", 1, 5));
  std::string other = good;
  other.replace(other.find("record/1"), 8, "record/9");
  const std::string text = refusal(
      {folder("cut", good.substr(0, 50)), (root_ / "missing").string(), folder("other", other), folder("good", good)});
  EXPECT_NE(text.find("cut/records.jsonl:1: the record does not end with a newline: it was cut off"), text.npos);
  EXPECT_NE(text.find("missing: there is no such folder"), text.npos);
  EXPECT_NE(text.find("\"schema\" is \"shardproof.record/9\""), text.npos);
  EXPECT_EQ(count(text, "\n"), 2u) << text;
  EXPECT_EQ(refusal({folder("good", good)}), "accepted");
}

TEST_F(ReportFiles, RunsAreNotMixedByChance) {
  Record second = measured("dp1", 1, 5);
  second.environment.commit = "c1";
  const std::string both = folder("both", line(measured("dp1", 1, 5)) + line(second));
  EXPECT_EQ(refusal({both}), both +
                                 "/records.jsonl: records 1 and 2 are of different runs (commit c0 and c1): --mixed "
                                 "reports on them together");
  EXPECT_EQ(refusal({both}, true), "accepted");
  EXPECT_EQ(refusal({folder("a", line(measured("dp1", 1, 5))), folder("b", line(second))}), "accepted")
      << "two folders were asked for";
}

TEST_F(ReportFiles, TracesAreReadOrRefused) {
  const std::string good = line(measured("dp1", 1, 5));
  EXPECT_NE(refusal({folder("x", good, "{\"traceEvents\":[")}).find("x/trace.json: "), std::string::npos);
  EXPECT_NE(refusal({folder("x", good, "[]")}).find("no trace"), std::string::npos);
  EXPECT_NE(refusal({folder("x", good, "{\"traceEvents\":{\"a\":{}}}")}).find("no trace"), std::string::npos);
  EXPECT_NE(refusal({folder("x", good, R"({"traceEvents":[{"ph":"X","ts":0,"dur":-1}]})")}).find("not below 0"),
            std::string::npos);
  EXPECT_NE(refusal({folder("x", good, R"({"traceEvents":[{"ph":"M"}]})")}).find("no event"), std::string::npos);

  const std::string trace = R"({"other":[{"ph":"X"}],"traceEvents":[
    {"name":"thread_name","ph":"M","pid":0,"tid":0,"args":{"name":"step"}},
    {"name":"thread_name","ph":"M","pid":0,"tid":1,"args":{"name":"action"}},
    {"name":"step 2","ph":"X","pid":0,"tid":0,"ts":0,"dur":10},
    {"name":"step 3","ph":"X","pid":0,"tid":0,"ts":10,"dur":10},
    {"name":"early","ph":"X","pid":0,"tid":1,"ts":1,"dur":4},
    {"name":"<0F0>","ph":"X","pid":0,"tid":1,"ts":12,"dur":6}]})";
  const std::vector folders = {folder("x", good, trace)};
  const ReportData data = read_reported(folders, false);
  ASSERT_EQ(data.timelines.size(), 1u);
  const std::string page = report_html(data);
  EXPECT_NE(page.find("step 3, wall time"), page.npos);
  EXPECT_NE(page.find("&lt;0F0&gt;: 6 us"), page.npos);
  EXPECT_EQ(page.find("early"), page.npos) << "of an earlier step";
}

TEST_F(ReportFiles, ATimelineOfManySpansStaysSmall) {
  Timeline timeline;
  for (int rank = 0; rank < 8; ++rank)
    for (const char* lane : {"compute", "wait", "communication"})
      for (int k = 0; k < 20000; ++k) timeline.ranks[rank][lane].push_back({"k", k * 10.0, k * 10.0 + 5});
  EXPECT_LT(timeline_picture(timeline).size(), 4u << 20);
  EXPECT_EQ(timeline_picture({.title = "t", .ranks = {{0, {{"compute", {{"k", 1, 1}}}}}}}).find("nan"),
            std::string::npos);
}

TEST_F(ReportFiles, WhatCannotBeWrittenLeavesTheOldFile) {
  const ReportData data = data_of({measured("dp1", 1, 5)});
  write_reports(root_, data);
  for (const char* name : report_names) EXPECT_GT(fs::file_size(root_ / name), 0u) << name;
  fs::remove(root_ / "records.csv");
  fs::create_directory(root_ / "records.csv");
  EXPECT_THROW(write_reports(root_, data), WriteError);
  for (const auto& entry : fs::directory_iterator(root_))
    EXPECT_EQ(entry.path().string().find("partial"), std::string::npos) << entry.path();
}

}  // namespace
}  // namespace shardproof::harness
