#!/bin/sh
# Usage: check_kernel_symbols.sh OBJECT...
# Fails if the object of an instruction set above the baseline defines a symbol that the linker
# could use for the rest of the program: then an older processor would run its instructions.
set -eu
checked=0
for object in "$@"; do
  case "$object" in
    *kernels_avx2.cpp.o | *kernels_avx512.cpp.o) ;;
    *) continue ;;
  esac
  checked=$((checked + 1))
  # Defined symbols that other objects can see, but for the table itself.
  shared=$(nm --defined-only --extern-only "$object" | grep -v -E 'k(Avx2|Avx512)KernelsE$' || true)
  if [ -n "$shared" ]; then
    echo "$object shares more than its table:"
    echo "$shared"
    exit 1
  fi
done
if [ "$checked" -ne 2 ]; then
  echo "expected the objects of 2 instruction sets, found $checked"
  exit 1
fi
