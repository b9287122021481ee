// Lesson 3: a training step as a value. Tracing needs shapes only, so the step of a model of any size can be had, looked
// at and planned on any machine.
#include <neap/ir/verify.hpp>
#include <neap/model/zoo/llama.hpp>
#include <neap/neap.hpp>

#include <cstdio>

int main() {
  neap::zoo::llama model(neap::zoo::llama_config::llama7b());  // 27 GB of weights without data: no memory yet
  auto const tokens = neap::tensor::lazy({neap::dtype::i64, {1, 512}});
  auto const step = neap::training_step(model, std::pair{tokens, tokens}, neap::cross_entropy{},
                                        neap::adamw{.rate = 3e-4}, {.clip_norm = 1.0});
  auto const& g = step.program;
  std::printf("%zu ops, %zu values, resident %.1f GB\n", g.op_count(), g.value_count(),
              static_cast<double>(g.resident_bytes()) * 1e-9);
  for (std::size_t i = 0; i < 4; ++i)
    std::printf("  %-28s %-8s %s\n", step.residents[i].name.c_str(),
                std::string(neap::name_of(g.role(step.residents[i].value))).c_str(),
                neap::to_string(g.type(step.residents[i].value)).c_str());
  auto const sound = neap::verify(g);
  return sound.ok() && !step.residents[0].holder.has_data() ? 0 : 1;
}
