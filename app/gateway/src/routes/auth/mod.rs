//! Sign-in, sessions, identity providers and keys of people, under `/v1/auth`.

mod accounts;
mod callback;
pub(crate) mod failures;
mod form;
mod keys;
mod password;
mod providers;
pub(crate) mod recorder;
mod session_list;
mod setup;
mod state_cookie;
mod user;
pub(crate) mod visitor;

pub(crate) use accounts::{initialize, login, logout, register};
pub(crate) use callback::callback as provider_callback;
pub(crate) use keys::{create as create_key, list as list_keys, revoke as revoke_key};
pub(crate) use password::change as change_password;
pub(crate) use providers::{list as list_providers, start as start_at_provider};
pub(crate) use session_list::{
    end as end_session, end_others as end_other_sessions, list as list_sessions,
};
pub(crate) use setup::setup_status;
pub(crate) use user::me;
