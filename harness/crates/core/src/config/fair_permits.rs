//! `fair_permits`: turns of users who wait for limited work.

use std::num::NonZeroU32;

use serde::Deserialize;

use super::check::Checker;

/// Largest weight. A round has at most that many turns per user, so the others wait not much longer.
const MAX_WEIGHT: u32 = 100;

/// Turns of users who wait for model calls, commands, searches, documents, computations or states.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct FairPermitsConfig {
    /// Weights of users by their role.
    pub weights: RoleWeights,
}

/// Number of turns in one round, by role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RoleWeights {
    /// Weight of each administrator.
    pub admin: u32,
    /// Weight of each other user, and of callers without an account.
    pub user: u32,
}

impl Default for RoleWeights {
    fn default() -> Self {
        Self { admin: 1, user: 1 }
    }
}

impl RoleWeights {
    /// Returns the weights of administrators and of other users, divided by their common factor:
    /// the proportion is the same, and rounds are short.
    pub fn reduced(&self) -> (NonZeroU32, NonZeroU32) {
        let weight = |weight| NonZeroU32::new(weight).unwrap_or(NonZeroU32::MIN);
        let (admin, user) = (weight(self.admin).get(), weight(self.user).get());
        let (mut divisor, mut rest) = (admin, user);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        (weight(admin / divisor), weight(user / divisor))
    }
}

impl FairPermitsConfig {
    pub(super) fn check(&self, check: &mut Checker) {
        check.under("weights", |check| {
            for (role, weight) in [("admin", self.weights.admin), ("user", self.weights.user)] {
                check.within(role, weight, 1..=MAX_WEIGHT);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_divided_by_their_common_factor() {
        for (admin, user, reduced) in [
            (1, 1, (1, 1)),
            (4, 4, (1, 1)),
            (12, 8, (3, 2)),
            (3, 5, (3, 5)),
        ] {
            let found = RoleWeights { admin, user }.reduced();
            assert_eq!((found.0.get(), found.1.get()), reduced);
        }
    }
}
