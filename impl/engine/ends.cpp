// SPDX-License-Identifier: Apache-2.0
#include "impl/engine/ends.hpp"

#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/embedding/embedding.hpp"

namespace shardproof::engine {

using step::Readers;
using step::SavedTensors;

namespace {

cross_entropy::Slice slice_of(const Pass& pass) { return {pass.vocab.begin, pass.workload.vocab}; }

}  // namespace

Embedding::Embedding(ParameterStore& store)
    : token_(&store["token_embedding.weight"]), position_(&store["position_embedding.weight"]) {}

Tensor Embedding::forward(const Pass& pass, SavedTensors& saved) const {
  const Tensor sum = pass.activation("embedding", {pass.rows(), pass.workload.hidden});
  embedding::forward(pass.queue, pass.tokens, token_->weights(pass.version), pass.vocab.begin, pass.workload.vocab,
                     pass.split.first() ? position_->weights(pass.version) : Tensor(), sum);
  pass.split.join(pass.queue, sum, comm::Operator::sum, "embedding_output");
  Tensor mask;
  Tensor x = pass.drop(workload::DropoutSite::embedding, 0, sum, mask);
  if (mask) saved.keep("embedding_mask", mask, Readers::input);
  return x;
}

void Embedding::backward_input(const Pass& pass, const Tensor& dy, SavedTensors& saved) const {
  const Tensor d = pass.drop_backward(saved.find("embedding_mask"), dy);
  saved.release_after(Readers::input);
  saved.keep("embedding.gradient", d, Readers::weight);
}

void Embedding::backward_weight(const Pass& pass, SavedTensors& saved) const {
  embedding::backward_weight(pass.queue, pass.tokens, saved["embedding.gradient"], pass.vocab.begin,
                             pass.workload.vocab, pass.workload.sequence, token_->gradient, position_->gradient);
  saved.release_after(Readers::weight);
}

Head::Head(ParameterStore& store, const workload::Workload& workload)
    : norm_(store["final_norm.weight"], store["final_norm.bias"]),
      linear_(store[workload.tied_head ? "token_embedding.weight" : "head.weight"], nullptr) {}

void Head::forward(const Pass& pass, const Tensor& x, const WideTotal& loss, SavedTensors& saved) const {
  Norm::Saved norm;
  const Tensor h = norm_.forward(pass, "final_norm", x, norm);
  saved.keep("final_norm_input", norm.input, Readers::both);
  saved.keep("final_norm_mean", norm.mean, Readers::both);
  saved.keep("final_norm_rstd", norm.rstd, Readers::both);
  saved.keep("final_norm_output", h, Readers::weight);
  const Tensor z = linear_.forward(pass, "logits", h);
  const double smoothing = pass.workload.label_smoothing;
  const Tensor max = pass.activation("logit_max", {pass.rows()});
  const Tensor sum = pass.activation("logit_sum", {pass.rows()});
  const Tensor target = pass.activation("target_logit", {pass.rows()});
  const Accumulator total = smoothing > 0 ? pass.sum("logit_total", {pass.rows()}) : Accumulator();
  cross_entropy::row_max(pass.queue, z, max);
  pass.split.join(pass.queue, max, comm::Operator::max, "logit_max");
  cross_entropy::row_sums(pass.queue, z, pass.labels, slice_of(pass), max, sum, target, total);
  pass.split.join(pass.queue, sum, comm::Operator::sum, "logit_sum");
  pass.split.join(pass.queue, target, comm::Operator::sum, "target_logit");
  cross_entropy::loss(pass.queue, pass.labels, max, sum, target, total ? joined(pass, total, "logit_total") : Tensor(),
                      smoothing, pass.workload.vocab, loss);
  saved.keep("logits", z, Readers::input);
  saved.keep("logit_max", max, Readers::input);
  saved.keep("logit_sum", sum, Readers::input);
}

Tensor Head::backward_input(const Pass& pass, double factor, SavedTensors& saved) const {
  const Tensor dz = pass.activation("logits.gradient", saved["logits"].dims());
  cross_entropy::backward(pass.queue, saved["logits"], pass.labels, slice_of(pass), saved["logit_max"],
                          saved["logit_sum"], pass.workload.label_smoothing, factor, dz);
  const Accumulator dh_sum = pass.sum("final_norm_output.gradient", {pass.rows(), pass.workload.hidden});
  linear_.backward_input(pass, dz, dh_sum);
  const Tensor dh = joined(pass, dh_sum, "head_input_gradient");
  Tensor dx =
      norm_.backward_input(pass, dh, {saved["final_norm_input"], saved["final_norm_mean"], saved["final_norm_rstd"]});
  saved.release_after(Readers::input);
  saved.keep("logits.gradient", dz, Readers::weight);
  saved.keep("final_norm_output.gradient", dh, Readers::weight);
  return dx;
}

void Head::backward_weight(const Pass& pass, SavedTensors& saved) const {
  linear_.backward_weight(pass, saved["logits.gradient"], saved["final_norm_output"]);
  norm_.backward_weight(pass, saved["final_norm_output.gradient"],
                        {saved["final_norm_input"], saved["final_norm_mean"], saved["final_norm_rstd"]});
  saved.release_after(Readers::weight);
}

}  // namespace shardproof::engine
