// Lesson 5: a training stops, and goes on from a file as if it had never stopped: the same losses to the last bit.
#include <neap/neap.hpp>
#include <neap/train/training_file.hpp>

#include <cstdio>
#include <filesystem>

struct network {
  neap::nn::linear in{8, 32}, out{32, 4};
  neap::nn::dropout drop{0.2};
  neap::tensor operator()(neap::tensor const& x) const { return out(drop(neap::gelu(in(x)))); }
};

int main() {
  auto const folder = std::filesystem::temp_directory_path() / "neap_05_save_and_resume";
  std::filesystem::create_directories(folder);
  std::string const path = folder / "run.safetensors";
  std::pair const batch{neap::tensor::randn({64, 8}, 1), neap::tensor::randn({64, 4}, 2)};
  auto const step = [&](network& model, neap::training_state& state) {
    return neap::eager_step(model, batch, neap::mse{}, neap::adamw{.rate = 1e-2}, state).item<float>();
  };

  network model;
  neap::training_state state;  // optimizer states and the number of steps
  for (int i = 0; i < 5; ++i) step(model, state);
  neap::save(model, state, path, {{"epoch", "5"}}).value();  // value() throws if the disk is full
  float went_on[3];
  for (float& loss : went_on) loss = step(model, state);

  network again;  // as another process would make it, with other random weights
  neap::training_state its_state;
  auto const found = neap::load(again, its_state, path).value();
  std::printf("%s %s\n", found.metadata[0].first.c_str(), found.metadata[0].second.c_str());
  bool same = true;
  for (float loss : went_on) {
    float const resumed = step(again, its_state);
    std::printf("loss %.6f, resumed %.6f\n", static_cast<double>(loss), static_cast<double>(resumed));
    same = same && loss == resumed;
  }

  network only_weights;  // the file is one of the model as well: for evaluation, or for other tools
  neap::load(only_weights, path).value();

  neap::nn::linear other(8, 16);
  auto const refused = neap::load(other, path);  // says by name what does not fit, and changes nothing
  std::printf("%s\n", refused.message().c_str());
  std::filesystem::remove_all(folder);
  return same && !refused ? 0 : 1;
}
