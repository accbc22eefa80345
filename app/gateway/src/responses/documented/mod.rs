//! Types that describe the JSON of responses in the OpenAPI document. The responses themselves are
//! built by the functions of the parent module.

mod assistants;
mod crons;
mod flow_nodes;
mod flows;
mod items;
mod protocol;
mod runs;
mod selection;
mod states;
mod system;
mod threads;

pub use assistants::{Assistant, AssistantVersions, Assistants, Graph, GraphSchemas, Subgraphs};
pub use crons::{Cron, Crons};
pub use flow_nodes::RunNodes;
pub use flows::{
    FlowAdapterKinds, FlowAssets, FlowDocument, FlowEntries, FlowEntry, FlowError, FlowGraph,
    FlowNodeKinds, FlowSchema, FlowValidation, FlowVersions, SystemFlowState,
};
pub use items::{Item, ItemHits, ItemOrNull, Namespaces, StoreError};
pub use protocol::{ProtocolAnswer, ProtocolRefusal};
pub use runs::{Run, RunOutcome, Runs, StreamEvent};
pub use states::{StateUpdated, Task, ThreadState, ThreadStates};
pub use system::{
    Count, DeerFlowAnswer, DeerFlowError, Deployment, Document, Error, Health, Info, Metrics,
    Nothing, WebhookCall, WebhookCalls,
};
pub use threads::{Interrupt, Thread, ThreadPruned, ThreadStorage, Threads};
