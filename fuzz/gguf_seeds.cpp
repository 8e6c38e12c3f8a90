// Writes inputs for gguf_fuzz to begin with: small sound models of every type.
//   gguf_seeds FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "troika/model/testing/tiny_model.h"

using troika::model::TensorType;

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: gguf_seeds FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  for (const TensorType type : troika::model::kTensorTypes) {
    const troika::model::testing::TinyModel model(type, type == TensorType::kQ4_0);
    const auto bytes = model.bytes();
    const std::string name = std::string(troika::model::traits(type).name) + ".gguf";
    std::ofstream out(folder / name, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
    if (!out) {
      std::fprintf(stderr, "%s cannot be written\n", name.c_str());
      return 1;
    }
  }
  return 0;
}
