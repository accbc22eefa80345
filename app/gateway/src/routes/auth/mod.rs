//! Sign-in, sessions and keys of people, under `/v1/auth`.

mod accounts;
mod failures;
mod form;
mod keys;
mod password;
mod session_list;
mod setup;
mod user;
pub(crate) mod visitor;

pub(crate) use accounts::{initialize, login, logout, register};
pub(crate) use keys::{create as create_key, list as list_keys, revoke as revoke_key};
pub(crate) use password::change as change_password;
pub(crate) use session_list::{
    end as end_session, end_others as end_other_sessions, list as list_sessions,
};
pub(crate) use setup::{providers, setup_status};
pub(crate) use user::me;
