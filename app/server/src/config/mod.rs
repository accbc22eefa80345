//! Configuration: in force, watched and upgraded. [`harness::config_file`] finds, reads and checks it; what the environment alone
//! decides is in [`Settings`].

mod classes;
mod dotenv;
mod handle;
mod settings;
mod upgrade;
mod watch;

pub use classes::{MissingClass, missing_classes};
pub use dotenv::environment;
pub use handle::{ConfigHandle, Reload, STARTUP_ONLY};
pub use settings::{Deployment, Exposure, Settings, SettingsError};
pub use upgrade::{EXAMPLE, Upgrade, UpgradeError, upgrade_file};
pub use watch::watch;
