//! Actor of an administrative operation.

use deerflow_domain::accounts::NewAuditEntry;

use crate::client::Client;

/// User agent of entries that the command line writes.
const COMMAND_LINE: &str = "deerflow command line";

/// Actor of an administrative operation: an administrator, or by default the operator at the
/// command line.
#[derive(Debug, Clone, Default)]
pub struct Operator {
    /// Id of the administrator.
    pub actor: Option<String>,
    /// Client of the request.
    pub client: Option<Client>,
}

impl Operator {
    /// Adds actor and client to an audit entry.
    pub fn sign(&self, mut entry: NewAuditEntry) -> NewAuditEntry {
        entry.actor.clone_from(&self.actor);
        match &self.client {
            Some(client) => client.sign(entry),
            None => entry.from_client(None, Some(COMMAND_LINE)),
        }
    }
}
