//! Where the configuration in force comes from.

use std::fmt;
use std::sync::Arc;

use super::AppConfig;

/// Gives the configuration in force, which may change from one question to the next.
pub trait ConfigSource: fmt::Debug + Send + Sync {
    /// The configuration now. Take it once per piece of work: it never changes under you. Equal answers may be the same `Arc`.
    fn current(&self) -> Arc<AppConfig>;
}

/// Gives the value of a variable, if it has one.
type LookUp = dyn Fn(&str) -> Option<String> + Send + Sync;

/// The variables that `$NAME`s in files stand for. They are secrets: `Debug` shows none.
#[derive(Clone)]
pub struct Variables(Arc<LookUp>);

impl Variables {
    /// Variables that are looked up so.
    pub fn new(look_up: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look_up))
    }

    /// The value of a variable, if it has one.
    pub fn get(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }
}

/// No variables.
impl Default for Variables {
    fn default() -> Self {
        Self::new(|_name| None)
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variables").finish_non_exhaustive()
    }
}

/// A configuration that stays as it is.
impl ConfigSource for Arc<AppConfig> {
    fn current(&self) -> Arc<AppConfig> {
        self.clone()
    }
}
