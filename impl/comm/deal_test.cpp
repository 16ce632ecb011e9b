// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include "impl/comm/mpi.hpp"

namespace shardproof::comm {
namespace {

TEST(Deal, IsOfBlocks) {
  for (std::int64_t ranks = 1; ranks <= 13; ++ranks) {
    for (std::int64_t processes = 1; processes <= 15; ++processes) {
      for (std::int64_t each = 0; each <= 5; ++each) {
        if (each > 0 && each * processes < ranks) continue;
        const Deal deal{ranks, processes, each};
        std::int64_t next = 0, least = ranks, most = 0;
        for (std::int64_t p = 0; p < processes; ++p) {
          ASSERT_EQ(deal.first(p), next);
          for (std::int64_t k = 0; k < deal.count(p); ++k) EXPECT_EQ(deal.process_of(next++), p);
          EXPECT_EQ(deal.count(p) > 0, p < deal.used());
          EXPECT_TRUE(each == 0 || deal.count(p) == each || next == ranks);
          least = std::min(least, deal.count(p));
          most = std::max(most, deal.count(p));
        }
        EXPECT_EQ(next, ranks);
        EXPECT_TRUE(each > 0 || most - least <= 1);
      }
    }
  }
}

TEST(Deal, Examples) {
  EXPECT_EQ((Deal{8, 2}.first(1)), 4);
  EXPECT_EQ((Deal{4, 3}.first(1)), 2);
  EXPECT_EQ((Deal{2, 4}.used()), 2);
  EXPECT_EQ((Deal{4, 2, 4}.used()), 1);
}

}  // namespace
}  // namespace shardproof::comm
