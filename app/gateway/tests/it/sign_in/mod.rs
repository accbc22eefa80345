//! Sign-in over HTTP: accounts, sessions, keys and what refuses them.

mod accounts;
pub(crate) mod browser;
mod keys;
mod proxies;
mod sessions;
mod users;
