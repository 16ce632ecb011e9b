// SPDX-License-Identifier: Apache-2.0
// What the check of the papers' numbers must reject, and what each bad cell is told.
#include "harness/schedule_papers.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "kernels/core/errors.hpp"

namespace shardproof::harness {
namespace {

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

std::int64_t apart(const std::vector<PaperCell>& cells) {
  return std::ranges::count_if(cells, [](const PaperCell& cell) { return !cell.agrees(); });
}

TEST(SchedulePapers, AgreeAndSayWhichNumbersArePrinted) {
  const auto cells = paper_cells(paper_schedules());
  EXPECT_EQ(std::ranges::count(cells, "published", &PaperCell::kind), 48) << "table 5: 12 rows of 4 schedules";
  EXPECT_EQ(std::ranges::count(cells, "formula", &PaperCell::kind), 64);
  EXPECT_EQ(apart(cells), 0);
  const PaperReport report = paper_report(cells);
  EXPECT_TRUE(report.agree);
  EXPECT_EQ(report.text.find("APART"), std::string::npos);
  EXPECT_NE(report.text.find("112 cells, 0 apart: 48 of numbers that a paper prints, 64 of a paper's formula"),
            std::string::npos)
      << report.text;
  EXPECT_NE(report.text.find("Huang et al. 2019, section 2.3: (K-1)/(M+K-1)"), std::string::npos);
}

TEST(SchedulePapers, OneDigitChangedIsOneCellApart) {
  const std::string right(paper_schedules());
  for (const auto& [from, to] : {std::pair{"\"published\": 0.2431", "\"published\": 0.2432"},
                                 {"\"published\": 0.1055", "\"published\": 0.1155"},
                                 {"[18.522,", "[18.622,"}}) {
    const auto cells = paper_cells(replaced(right, from, to));
    EXPECT_EQ(apart(cells), 1) << to;
    const PaperReport report = paper_report(cells);
    EXPECT_FALSE(report.agree);
    EXPECT_NE(report.text.find("APART"), std::string::npos);
    EXPECT_NE(report.text.find("112 cells, 1 apart"), std::string::npos);
  }
  EXPECT_FALSE(paper_report({}).agree) << "nothing compared is no agreement";
}

TEST(SchedulePapers, BadCellsAreRefused) {
  const auto refusal = [](const std::string& cells) {
    try {
      paper_cells(R"({"citation": "c", "symbols": "s", "cells": )" + cells + "}");
    } catch (const BadInput& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string good =
      R"([{"kind": "formula", "schedule": "gpipe", "ranks": 4, "microbatches": 4, "quantity": "bubble_fraction"}])";
  EXPECT_EQ(refusal(good), "accepted");
  const auto broken = [&](std::string_view from, std::string_view to) { return refusal(replaced(good, from, to)); };
  const std::vector<std::pair<std::string, std::string>> table = {
      {refusal("[]"), "\"cells\" must be a list of objects"},
      {refusal("[1]"), "\"cells\" must be a list of objects"},
      {refusal(R"(["gpipe"])"), "\"cells\" must be a list of objects"},
      {broken("\"formula\"", "\"form\""), "cell 1: unknown kind \"form\": did you mean \"formula\"?"},
      {broken("\"gpipe\"", "\"gpip\""), "unknown schedule \"gpip\""},
      {broken("\"ranks\": 4", "\"ranks\": 0"), "\"ranks\""},
      {broken("\"ranks\": 4", "\"ranks\": 4097"), "\"ranks\" is 4097: at most 4096"},
      {broken("\"ranks\": 4", "\"ranks\": 4, \"rank\": 4"), "\"rank\" is 4 of 4, counted from 0"},
      {broken("\"ranks\": 4", "\"ranks\": 4, \"chunks\": 2"), "gpipe cannot serve it: chunks 2: a rank holds 1 stage"},
      {broken("\"ranks\": 4", "\"ranks\": 4, \"costs\": [1, 1, 1]"), "\"costs\" must be four numbers from 0"},
      {broken("\"ranks\": 4", "\"ranks\": 4, \"costs\": [1, 1, -1, 0]"), "\"costs\" must be four numbers from 0"},
      {broken("\"ranks\": 4", "\"ranks\": 4, \"costs\": [1, 1, 1, 1]"), "(K-1)/(M+K-1) of Huang et al. 2019"},
      {broken("\"ranks\": 4", "\"ranks\": 4, \"published\": 1"), "published"},
      {broken("bubble_fraction", "bubble"), "unknown quantity \"bubble\""},
      {broken("bubble_fraction", "weight_versions"), "no formula gives weight_versions of gpipe"},
      {broken("\"formula\"", "\"published\""), "where"},
  };
  for (const auto& [said, wanted] : table) EXPECT_NE(said.find(wanted), std::string::npos) << said << "\n" << wanted;
  EXPECT_EQ(broken("\"gpipe\"", "\"gpip\"").find("schedules.json: cell 1: "), 0u);
}

}  // namespace
}  // namespace shardproof::harness
