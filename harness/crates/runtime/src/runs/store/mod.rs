//! Ports through which runs become durable.
//!
//! To add a store: implement the five traits in a crate of its own, named `{Technology}RunStore`
//! and so on, and run every function of `testkit::run_store` and `testkit::run_events` against it.
//! All stores guarantee: a write is committed when the call returns; all later reads see it; rows
//! of one user are invisible to others.

mod auxiliary_usage;
mod calls;
mod error;
mod events;
mod nodes;
mod requests;
mod runs;
mod store_error;
mod webhooks;

pub use auxiliary_usage::{AuxiliaryUsage, UsageLedger};
pub use calls::{CallEntry, CallProgress, ToolLedger};
pub use error::{AdmitError, CommitError};
pub use events::{EventQuery, NewRunEvent, Order, RunEvent, RunEventStore, category};
pub use nodes::{Lease, NodeRecord, NodeStore, OwnedRun, StoreLockStatus};
pub use requests::{CreatedResource, KeyState, RequestKey, RequestStore};
pub use runs::{
    Admitted, Claimed, NewRun, RunCommit, RunCommitStore, RunCreateStore, RunDeleteStore, RunEnd,
    RunListQuery, RunQueryStore, StoredRunRequest, UnfinishedRun,
};
pub use store_error::StoreError;
pub use webhooks::{WebhookCall, WebhookDelivery, WebhookOutbox, WebhookOutboxEntry};

// Former names, for crates that were written against them.
#[doc(hidden)]
pub use crate::runs::store::AuxiliaryUsage as AsideCost;
#[doc(hidden)]
pub use crate::runs::store::CreatedResource as Made;
#[doc(hidden)]
pub use crate::runs::store::KeyState as Known;
#[doc(hidden)]
pub use crate::runs::store::StoreLockStatus as Hold;
#[doc(hidden)]
pub use crate::runs::store::StoredRunRequest as Recipe;
#[doc(hidden)]
pub use crate::runs::store::UnfinishedRun as RunStanding;
#[doc(hidden)]
pub use crate::runs::store::UsageLedger as AsideLedger;
#[doc(hidden)]
pub use crate::runs::store::WebhookOutboxEntry as WebhookLetter;
