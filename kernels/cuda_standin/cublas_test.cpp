// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <vector>

#include <cublas_v2.h>
#include <gtest/gtest.h>

namespace shardproof::cuda_standin {
namespace {

/// Matrices of small whole numbers: every sum is exact, in any order.
template <class S>
struct Arrays {
  explicit Arrays(std::size_t n) : bytes(n * sizeof(S)) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data), bytes), cudaSuccess);
  }
  ~Arrays() { cudaFree(data); }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  std::size_t bytes;
  S* data = nullptr;
};

template <class S>
cublasStatus_t gemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, S alpha,
                    const S* a, int lda, const S* b, int ldb, S beta, S* c, int ldc) {
  if constexpr (std::is_same_v<S, float>) {
    return cublasSgemm(h, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
  } else {
    return cublasDgemm(h, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
  }
}

template <class S>
class Cublas : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
    ASSERT_EQ(cublasSetStream(handle, stream), CUBLAS_STATUS_SUCCESS);
  }
  void TearDown() override {
    EXPECT_EQ(cublasDestroy(handle), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  }
  void upload(const Arrays<S>& to, const std::vector<S>& from) {
    ASSERT_EQ(cudaMemcpyAsync(to.data, from.data(), from.size() * sizeof(S), cudaMemcpyHostToDevice, stream),
              cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }

  cudaStream_t stream = nullptr;
  cublasHandle_t handle = nullptr;
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Cublas, Types);

TYPED_TEST(Cublas, MultipliesColumnMajorMatrices) {
  using S = TypeParam;
  constexpr int m = 3, n = 5, k = 4, gap = 2;
  for (const auto ta : {CUBLAS_OP_N, CUBLAS_OP_T}) {
    for (const auto tb : {CUBLAS_OP_N, CUBLAS_OP_T}) {
      for (const S beta : {S{0}, S{3}}) {
        const int lda = (ta == CUBLAS_OP_N ? m : k) + gap, ldb = (tb == CUBLAS_OP_N ? k : n) + gap, ldc = m + gap;
        std::vector<S> a(static_cast<std::size_t>(lda * 5)), b(static_cast<std::size_t>(ldb * 5)),
            c(static_cast<std::size_t>(ldc * n), beta == 0 ? std::numeric_limits<S>::quiet_NaN() : S{2});
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<S>(i % 7) - 3;
        for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<S>(i % 5) - 1;
        Arrays<S> da(a.size()), db(b.size()), dc(c.size());
        this->upload(da, a), this->upload(db, b), this->upload(dc, c);
        ASSERT_EQ(gemm<S>(this->handle, ta, tb, m, n, k, 2, da.data, lda, db.data, ldb, beta, dc.data, ldc),
                  CUBLAS_STATUS_SUCCESS);
        std::vector<S> found(c.size());
        ASSERT_EQ(cudaMemcpyAsync(found.data(), dc.data, dc.bytes, cudaMemcpyDeviceToHost, this->stream), cudaSuccess);
        ASSERT_EQ(cudaStreamSynchronize(this->stream), cudaSuccess);
        for (int j = 0; j < n; ++j) {
          for (int i = 0; i < m; ++i) {
            S sum = 0;
            for (int l = 0; l < k; ++l) {
              sum += a[static_cast<std::size_t>(ta == CUBLAS_OP_N ? l * lda + i : i * lda + l)] *
                     b[static_cast<std::size_t>(tb == CUBLAS_OP_N ? j * ldb + l : l * ldb + j)];
            }
            ASSERT_EQ(found[static_cast<std::size_t>(j * ldc + i)], 2 * sum + (beta == 0 ? 0 : beta * 2))
                << i << "," << j;
          }
        }
      }
    }
  }
}

TYPED_TEST(Cublas, WrongCallsAreRefused) {
  using S = TypeParam;
  Arrays<S> x(64);
  const auto call = [&](cublasHandle_t h, int m, int n, int k, int lda, int ldb, int ldc) {
    return gemm<S>(h, CUBLAS_OP_N, CUBLAS_OP_T, m, n, k, 1, x.data, lda, x.data, ldb, 0, x.data, ldc);
  };
  EXPECT_EQ(call(nullptr, 2, 3, 4, 2, 3, 2), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(call(this->handle, -1, 3, 4, 2, 3, 2), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(call(this->handle, 2, 3, 4, 1, 3, 2), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(call(this->handle, 2, 3, 4, 2, 2, 2), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(call(this->handle, 2, 3, 4, 2, 3, 1), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSetStream(this->handle, nullptr), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasSetMathMode(nullptr, CUBLAS_PEDANTIC_MATH), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_STRNE(cublasGetStatusString(CUBLAS_STATUS_INVALID_VALUE), cublasGetStatusString(CUBLAS_STATUS_SUCCESS));
}

}  // namespace
}  // namespace shardproof::cuda_standin
