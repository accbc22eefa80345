//! Sign-in: password hashes, sessions, signed texts, and the management of accounts.
//!
//! The stores of `deerflow_domain::accounts` decide what concerns several rows. This crate computes
//! password hashes, generates tokens, talks to identity providers, and composes the steps of each
//! operation. It has no routes and no SQL.

mod client;
mod deletion;
mod import;
pub mod oidc;
mod operator;
pub mod password;
mod secret;
mod session_cache;
mod sign_in;
mod signing;
mod token;
mod user_runs;

pub use client::Client;
pub use deletion::{AccountDeletion, DeletionError};
pub use import::{ImportPlan, RejectedUser, plan_import};
pub use operator::Operator;
pub use secret::{SECRET_FILE, SecretError, SigningSecret};
pub use session_cache::{MAX_AGE, SessionCache, SessionUse, TokenError};
pub use sign_in::{
    CreatedUser, Credentials, NewUser, PasswordChange, ProviderAttempt, ProviderRefusal, SignIn,
    SignInError, SignInParts, SignedIn, UserChange,
};
pub use signing::{InvalidSignature, Signer};
pub use token::SessionToken;
pub use user_runs::{RunControl, StoredRuns, UserRuns};
