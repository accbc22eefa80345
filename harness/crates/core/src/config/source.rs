//! Source of the configuration in force.

use std::fmt;
use std::sync::Arc;

use super::AppConfig;

/// Source of the configuration in force, which may change between calls.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use deerflow_core::config::{AppConfig, ConfigSource};
///
/// /// Configuration that the program replaces while it runs.
/// #[derive(Debug, Default)]
/// struct Replaceable(Mutex<Arc<AppConfig>>);
///
/// impl ConfigSource for Replaceable {
///     fn current(&self) -> Arc<AppConfig> {
///         self.0.lock().unwrap().clone()
///     }
/// }
///
/// let source = Replaceable::default();
/// let before = source.current();
/// *source.0.lock().unwrap() = Arc::default();
/// assert!(!Arc::ptr_eq(&before, &source.current()));
/// ```
pub trait ConfigSource: fmt::Debug + Send + Sync {
    /// Returns the current configuration, which is immutable: call this once per unit of work. An
    /// unchanged configuration may be the same `Arc`.
    fn current(&self) -> Arc<AppConfig>;
}

/// Function that returns the value of a variable.
type LookUp = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Values of `$NAME` references in files. They are secrets: `Debug` prints none.
#[derive(Clone)]
pub struct Variables(Arc<LookUp>);

impl Variables {
    /// Creates variables from a lookup function.
    pub fn new(look_up: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look_up))
    }

    /// Returns the value of a variable, if it is set.
    pub fn get(&self, name: &str) -> Option<String> {
        (self.0)(name)
    }
}

/// Creates an empty set of variables.
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

/// Source that always returns the same configuration.
impl ConfigSource for Arc<AppConfig> {
    fn current(&self) -> Arc<AppConfig> {
        self.clone()
    }
}
