// Writes inputs for soc_fuzz to begin with: the descriptions of the program.
//   soc_seeds FOLDER
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "troika/soc/catalogue.h"

int main(int argc, char** argv) {
  using namespace troika;
  if (argc != 2) {
    std::fputs("usage: soc_seeds FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  for (const soc::Description& description : soc::descriptions()) {
    std::ofstream out(folder / (std::string(description.name) + ".json"), std::ios::binary);
    out << *description.json;
    if (!out.flush()) {
      std::fputs("a description cannot be written\n", stderr);
      return 1;
    }
  }
  return 0;
}
