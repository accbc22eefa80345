//! `/admin` and `/v1/admin`: administration of the installation.

mod audit;
mod users;
mod webhooks;

pub(crate) use audit::{DEFAULT_ENTRIES, MAX_ENTRIES, list as list_audit};
pub(crate) use users::{
    DEFAULT_USERS, MAX_USERS, change as change_user, create as create_user, delete as delete_user,
    list as list_users,
};
pub(crate) use webhooks::{DEFAULT_CALLS, MAX_CALLS, list as webhooks, resend as resend_webhook};

/// Error for all other users.
const ADMINS_ONLY: &str = "Admin privileges required to manage the installation.";
