//! Weights by which waiting users receive permits.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;

/// Weights of all [`FairPermits`](crate::fair_permits::FairPermits) that are created without their
/// own.
static OF_PROCESS: LazyLock<Arc<TurnWeights>> = LazyLock::new(Arc::default);

/// Weights of users: the number of permits that a waiting user receives in one round. By default
/// each user has the weight 1.
///
/// ```
/// use std::num::NonZeroU32;
/// use deerflow_core::turn_weights::TurnWeights;
///
/// let three = NonZeroU32::new(3).ok_or("zero")?;
/// let weights = TurnWeights::default();
/// weights.set(NonZeroU32::MIN, [("ann".to_owned(), three)].into());
/// assert_eq!((weights.of("ann"), weights.of("ben")), (three, NonZeroU32::MIN));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct TurnWeights(RwLock<Weights>);

#[derive(Debug)]
struct Weights {
    common: NonZeroU32,
    of_users: HashMap<String, NonZeroU32>,
}

impl Default for TurnWeights {
    fn default() -> Self {
        Self(RwLock::new(Weights {
            common: NonZeroU32::MIN,
            of_users: HashMap::new(),
        }))
    }
}

impl TurnWeights {
    /// Returns the weights of this process.
    pub fn of_process() -> Arc<Self> {
        OF_PROCESS.clone()
    }

    /// Sets the weights of these users, and the common weight of all others. A user whose round has
    /// begun gets the new weight in its next round.
    pub fn set(&self, common: NonZeroU32, of_users: HashMap<String, NonZeroU32>) {
        *self.0.write() = Weights { common, of_users };
    }

    /// Returns the weight of a user.
    pub fn of(&self, user: &str) -> NonZeroU32 {
        let weights = self.0.read();
        weights
            .of_users
            .get(user)
            .copied()
            .unwrap_or(weights.common)
    }
}
