#include "troika/model/tensor_type.h"

#include <algorithm>
#include <array>
#include <cassert>

#include "troika/base/result.h"
#include "troika/model/k_quants.h"

namespace troika::model {
namespace {

constexpr std::array kTraits = {
    TypeTraits{TensorType::kF32, "F32", 1, 4},
    TypeTraits{TensorType::kF16, "F16", 1, 2},
    TypeTraits{TensorType::kBF16, "BF16", 1, 2},
    TypeTraits{TensorType::kQ8_0, "Q8_0", 32, 34},
    TypeTraits{TensorType::kQ4_0, "Q4_0", 32, 18},
    TypeTraits{TensorType::kQ4_1, "Q4_1", 32, 20},
    TypeTraits{TensorType::kQ4_K, "Q4_K", kSuperBlock, Q4KBlock::kBytes},
    TypeTraits{TensorType::kQ6_K, "Q6_K", kSuperBlock, Q6KBlock::kBytes},
};
static_assert(kTraits.size() == kTensorTypes.size());

struct TypeName {
  uint32_t id;
  std::string_view name;
};

// Every id that the format ever gave out, also those withdrawn since.
constexpr std::array kNames = {
    TypeName{0, "F32"},         TypeName{1, "F16"},         TypeName{2, "Q4_0"},
    TypeName{3, "Q4_1"},        TypeName{4, "Q4_2"},        TypeName{5, "Q4_3"},
    TypeName{6, "Q5_0"},        TypeName{7, "Q5_1"},        TypeName{8, "Q8_0"},
    TypeName{9, "Q8_1"},        TypeName{10, "Q2_K"},       TypeName{11, "Q3_K"},
    TypeName{12, "Q4_K"},       TypeName{13, "Q5_K"},       TypeName{14, "Q6_K"},
    TypeName{15, "Q8_K"},       TypeName{16, "IQ2_XXS"},    TypeName{17, "IQ2_XS"},
    TypeName{18, "IQ3_XXS"},    TypeName{19, "IQ1_S"},      TypeName{20, "IQ4_NL"},
    TypeName{21, "IQ3_S"},      TypeName{22, "IQ2_S"},      TypeName{23, "IQ4_XS"},
    TypeName{24, "I8"},         TypeName{25, "I16"},        TypeName{26, "I32"},
    TypeName{27, "I64"},        TypeName{28, "F64"},        TypeName{29, "IQ1_M"},
    TypeName{30, "BF16"},       TypeName{31, "Q4_0_4_4"},   TypeName{32, "Q4_0_4_8"},
    TypeName{33, "Q4_0_8_8"},   TypeName{34, "TQ1_0"},      TypeName{35, "TQ2_0"},
    TypeName{36, "IQ4_NL_4_4"}, TypeName{37, "IQ4_NL_4_8"}, TypeName{38, "IQ4_NL_8_8"},
    TypeName{39, "MXFP4"},
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::optional<TypeTraits> traits_of(uint32_t gguf_type_id) {
  for (const TypeTraits& t : kTraits) {
    if (static_cast<uint32_t>(t.type) == gguf_type_id) return t;
  }
  return std::nullopt;
}

const TypeTraits& traits(TensorType type) {
  for (const TypeTraits& t : kTraits) {
    if (t.type == type) return t;
  }
  assert(false && "not a TensorType");
  return kTraits[0];
}

std::optional<TensorType> type_from_name(std::string_view name) {
  for (const TypeTraits& t : kTraits) {
    if (std::equal(t.name.begin(), t.name.end(), name.begin(), name.end(),
                   [](char a, char b) { return lower(a) == lower(b); })) {
      return t.type;
    }
  }
  return std::nullopt;
}

std::string gguf_type_name(uint32_t gguf_type_id) {
  for (const TypeName& t : kNames) {
    if (t.id == gguf_type_id) return std::string(t.name);
  }
  return fmt::format("#{}", gguf_type_id);
}

std::string supported_type_names() {
  std::string names;
  for (const TypeTraits& t : kTraits) {
    if (!names.empty()) names += ", ";
    names += t.name;
  }
  return names;
}

}  // namespace troika::model
