//! Ports of the gateway in addition to the kernel's.

mod access_control;
mod assist_view;
mod catalog_view;
mod metrics_view;
mod sign_in_rules;
mod thread_files;

pub use access_control::{AccessControl, NoAccessControl};
pub use assist_view::AssistView;
pub use catalog_view::{CatalogView, FeatureView, SuggestionsView};
pub use metrics_view::MetricsView;
pub use sign_in_rules::SignInRules;
pub use thread_files::{ThreadFilesError, ThreadFilesPort};
