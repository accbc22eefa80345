//! Ports of the kernel, one per file with its records. The embedding program chooses their
//! implementations; [`store`](crate::runs::store) states the guarantees of a store.

mod error;
mod node_notifier;
mod node_store;
mod observer;
mod request_store;
mod run_commit_store;
mod run_create_store;
mod run_delete_store;
mod run_event_store;
mod run_file_changes;
mod run_query_store;
mod runtime_ports;
mod usage_ledger;
mod webhook_outbox;

pub use crate::definition::EventContent;
pub use error::{AdmitError, CommitError};
pub use node_notifier::{NodeNotifier, WakeSignal};
pub use node_store::{Lease, NodeRecord, NodeStore, OwnedRun, StoreLockStatus};
pub use observer::{LifecycleKind, NullObserver, RunLifecycleEvent, RunObserver};
pub use request_store::{CreatedResource, KeyState, RequestStore};
pub use run_commit_store::{RunCommit, RunCommitStore, RunEnd};
pub use run_create_store::{Admitted, Claimed, NewRun, RunCreateStore, StoredRunRequest};
pub use run_delete_store::RunDeleteStore;
pub use run_event_store::{
    EventQuery, NODE_EVENT, NODE_EVENTS_OMITTED, NewRunEvent, Order, RunEvent, RunEventStore,
    WORKSPACE_CHANGES, category,
};
pub use run_file_changes::{NoFileChanges, RunFileChanges};
pub use run_query_store::{RunListQuery, RunQueryStore, UnfinishedRun};
pub use runtime_ports::RuntimePorts;
pub use usage_ledger::{AuxiliaryUsage, UsageLedger};
pub use webhook_outbox::{WebhookCall, WebhookDelivery, WebhookOutbox, WebhookOutboxEntry};
