//! Configuration: current value, reload and upgrade. [`harness::config_file`] locates, reads and
//! checks the file; [`Settings`] contains what is set by the environment only.

mod classes;
mod dotenv;
mod handle;
mod scheduler;
mod settings;
mod upgrade;
mod watch;

pub use classes::{MissingClass, missing_classes};
pub use dotenv::environment;
pub use handle::{ConfigHandle, Reload, STARTUP_ONLY};
pub(crate) use scheduler::SchedulerSettings;
pub use settings::{Deployment, Exposure, Settings, SettingsError};
pub use upgrade::{EXAMPLE, Upgrade, UpgradeError, upgrade_file};
pub(crate) use watch::may_be_a_change;
pub use watch::watch;
