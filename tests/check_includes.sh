#!/usr/bin/env bash
# Usage: check_includes.sh
# Fails if a source file includes one of a folder that its own may not know. docs/architecture.md
# draws the order.
set -euo pipefail
cd "$(dirname "$0")/.."

# What each folder may include beside itself. A folder below one of these (troika/graph/arch,
# another device) belongs to it unless it is named here too.
declare -A may=(
  [web]=""
  [troika/base]=""
  [troika/model]="troika/base"
  [troika/device/cpu/kernels]="troika/base troika/model troika/device/kv_layout.h"
  [troika/graph]="troika/base troika/model"
  [troika/device]="troika/base troika/model troika/graph"
  [troika/soc]="troika/base"
  [troika/published]="troika/base troika/soc"
  [troika/profile/record]="troika/base"
  [troika/cost]="troika/base troika/soc troika/profile/record"
  [troika/sim]="troika/base troika/model troika/graph troika/device troika/soc troika/cost troika/plan"
)
may[troika/device/cpu]="${may[troika/device]} troika/device troika/device/cpu/kernels"
may[troika/device/conformance]="${may[troika/device]} troika/device"
may[troika/device/check]="${may[troika/device]} troika/device troika/device/conformance"
may[troika/device/probe]="${may[troika/device/check]} troika/device/check"
may[troika/device/paced]="${may[troika/device]} troika/device troika/soc"
may[troika/device/systolic]="${may[troika/device/cpu]} troika/device/cpu ${may[troika/device/paced]} troika/device/paced"
may[troika/device/opencl]="${may[troika/device]} troika/device"
may[troika/device/faulty]="${may[troika/device]} troika/device"
may[troika/device/registry]="${may[troika/device]} troika/device"
# Any other device of the list may compute with the cpu's kernels.
devices=$(sed -n 's/^set(TROIKA_DEVICES \(.*\))$/\1/p' troika/device/CMakeLists.txt)
for device in $devices custom; do
  if [[ -z ${may[troika/device/$device]+named} ]]; then
    may[troika/device/$device]="${may[troika/device/cpu]} troika/device/cpu"
  fi
done
may[examples/custom_device]="${may[troika/device/custom]}"
may[troika/profile]="troika/base troika/device troika/device/registry troika/device/cpu/kernels"
may[troika/profile/measure]="${may[troika/device]} troika/device troika/profile/record"
may[troika/plan]="${may[troika/device]} troika/device"
may[troika/planner]="${may[troika/sim]} troika/sim"
may[troika/forecast]="${may[troika/planner]} troika/planner"
may[troika/reproduce]="${may[troika/forecast]} troika/forecast troika/published"
may[troika/runtime]="${may[troika/plan]} troika/plan"
may[troika/engine]="${may[troika/runtime]} troika/runtime troika/device/registry troika/device/check"
may[troika/engine]+=" troika/profile/record troika/profile/measure troika/cost troika/planner"
may[cli]="web ${may[troika/engine]} troika/engine troika/profile troika/device/cpu/kernels"
may[cli]+=" troika/device/check troika/device/probe troika/soc troika/cost troika/planner troika/forecast"
may[cli]+=" troika/published troika/reproduce"

# Any test may read files of the repository; tests of what runs on a device may name a real one.
test_may() {
  if [[ $1 == *_test.cpp ]]; then echo -n "tests/repository.h "; fi
  if [[ $1 == @(troika/device|troika/runtime|troika/engine|examples)/*_test.cpp ]]; then
    echo "troika/device/registry troika/device/cpu troika/device/conformance troika/plan troika/runtime"
  fi
}

# Sets `folder` to the longest named folder that holds the file; empty if there is none.
find_folder() {
  folder=${1%/*}
  while [[ -z ${may[$folder]+named} ]]; do
    if [[ $folder != */* ]]; then
      folder=""
      return
    fi
    folder=${folder%/*}
  done
}

failed=0
checked=0
while IFS=: read -r file line; do
  included=${line#*\"}
  included=${included%\"*}
  find_folder "$included"
  target=$folder
  find_folder "$file"
  checked=$((checked + 1))
  if [[ -z $folder ]]; then
    echo "$file: tests/check_includes.sh does not know its folder"
    failed=1
  elif [[ $target != "$folder" ]]; then
    allowed=" ${may[$folder]} $(test_may "$file") "
    if [[ $allowed != *" ${target:-none} "* && $allowed != *" $included "* ]]; then
      echo "$file includes $included, which $folder may not know"
      failed=1
    fi
  fi
done < <(grep -rHE --include='*.cpp' --include='*.h' --include='*.inl' '^ *# *include *"[a-z_]+/' troika cli web examples)
if ((checked == 0)); then
  echo "no include was found"
  failed=1
fi
exit "$failed"
