// SPDX-License-Identifier: Apache-2.0
#include "reference/embedding.hpp"

#include "reference/testing/values.hpp"

namespace shardproof::reference {
namespace {

using testing::array;
using testing::expect;

template <class S>
class Embedding : public ::testing::Test {};
TYPED_TEST_SUITE(Embedding, testing::Scalars);

TYPED_TEST(Embedding, LooksUpAndScattersWithRepeatedTokens) {
  using S = TypeParam;
  Arithmetic<S> arithmetic;
  const std::vector<std::int32_t> tokens{2, 0, 2};
  const auto y =
      embed(arithmetic, tokens, array<S>(3, 2, {1, 2, 3, 4, 5, 6}), array<S>(3, 2, {0.5, 0, 0, 0.5, -1, -1}));
  expect(y, {5.5, 6, 1, 2.5, 4, 5});

  Array<Sum<S>> token(3, 2), position(3, 2);
  const auto dy = array<S>(3, 2, {1, 2, 3, 4, 10, 20});
  embed_weight<S>(tokens, dy, token, position);
  embed_weight<S>(tokens, dy, token, position);
  expect(arithmetic.finish(token), {6, 8, 0, 0, 22, 44});  // token 2 stands at positions 0 and 2, token 1 nowhere
  expect(arithmetic.finish(position), {2, 4, 6, 8, 20, 40});
}

}  // namespace
}  // namespace shardproof::reference
