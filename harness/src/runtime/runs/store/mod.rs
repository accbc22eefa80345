//! The ports through which runs become durable.
//!
//! To add a store: implement the five traits in a crate of its own, named `{Technology}RunStore` and so on, and run every
//! function of `testkit::run_store` and `testkit::run_events` against it. What all of them promise: a write is committed when
//! the call returns; reads anywhere see it; a user's rows look to others as if they did not exist.

mod asides;
mod calls;
mod error;
mod events;
mod nodes;
mod requests;
mod runs;
mod webhooks;

pub use asides::{AsideCost, AsideLedger};
pub use calls::{CallEntry, CallProgress, ToolLedger};
pub use error::{AdmitError, CommitError, StoreError};
pub use events::{EventQuery, NewRunEvent, Order, RunEvent, RunEventStore, category};
pub use nodes::{Hold, Lease, NodeRecord, NodeStore, OwnedRun};
pub use requests::{Known, Made, RequestKey, RequestStore};
pub use runs::{
    Admitted, Claimed, NewRun, Recipe, RunCommit, RunCommitStore, RunCreateStore, RunDeleteStore,
    RunEnd, RunListQuery, RunQueryStore, RunStanding,
};
pub use webhooks::{WebhookCall, WebhookDelivery, WebhookLetter, WebhookOutbox};
