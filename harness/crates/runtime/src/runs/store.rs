//! Stores that a runtime needs: their traits, records and errors.
//!
//! To add a store: implement its traits in a separate crate, name each type `{Technology}{Port}`,
//! and run the contract suite of each trait against it; the suites are the modules of `testkit`.
//! All stores guarantee: a write is committed when the call returns; all later reads see it; rows
//! of one user are invisible to others.

pub use crate::agent::{CallEntry, CallProgress, ToolLedger};
pub use crate::definition::{RequestKey, StoreError};
pub use crate::ports::{
    AdmitError, Admitted, AuxiliaryUsage, Claimed, CommitError, CreatedResource, EventContent,
    EventQuery, KeyState, Lease, NODE_EVENT, NODE_EVENTS_OMITTED, NewRun, NewRunEvent, NodeRecord,
    NodeStore, Order, OwnedRun, RequestStore, RunCommit, RunCommitStore, RunCreateStore,
    RunDeleteStore, RunEnd, RunEvent, RunEventStore, RunListQuery, RunQueryStore, StoreLockStatus,
    StoredRunRequest, UnfinishedRun, UsageLedger, WORKSPACE_CHANGES, WebhookCall, WebhookDelivery,
    WebhookOutbox, WebhookOutboxEntry, category,
};

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
