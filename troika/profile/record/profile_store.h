// Profiles that earlier runs measured, kept in a folder of the user's cache: a file for each model
// shape on each set of devices.
#pragma once

#include <string>
#include <string_view>

#include "troika/base/result.h"
#include "troika/profile/record/profile.h"

namespace troika::profile {

// All that a profile depends on: program, model shape, devices with versions and facts, power mode.
std::string identity_of(const Profile& profile);

// Of another record that holds for what a profile holds for.
std::string key_of(const Profile& profile);
// kInvalidData with the reason why what was kept for `kept` is stale for `wanted`; `what` names it:
// "the stored plan".
Status check_holds(const Profile& kept, const Profile& wanted, std::string_view what);
// What a profile holds for, without what was measured.
Profile without_points(const Profile& profile);

class ProfileStore {
 public:
  // `folder` is made when something is saved; empty: nothing is kept.
  explicit ProfileStore(std::string folder)
      : folder_(folder.empty() ? std::string() : std::move(folder) + "/profiles") {}

  // What is kept for the same model and devices as those of `wanted`, complete or not. kNotFound if
  // there is nothing; kInvalidData with the reason if it is damaged or stale: of other versions,
  // another power mode or another program, or older than 30 days.
  Result<Profile> find(const Profile& wanted) const;
  Status save(const Profile& profile) const;
  std::string path(const Profile& profile) const;  // empty if nothing is kept

 private:
  const std::string folder_;
};

}  // namespace troika::profile
