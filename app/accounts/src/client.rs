//! Client of a request.

use std::net::IpAddr;

use deerflow_domain::accounts::{AddressKey, NewAuditEntry, short_agent};

/// Client of a request, as limits, sessions and the audit log record it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    /// Address.
    pub address: IpAddr,
    /// User agent.
    pub agent: Option<String>,
}

impl Client {
    /// Returns the address under which attempts are counted.
    pub fn key(&self) -> AddressKey {
        AddressKey::of(self.address)
    }

    /// Returns the user agent, shortened.
    pub(crate) fn short_agent(&self) -> Option<String> {
        self.agent.as_deref().map(short_agent)
    }

    /// Adds the client to an audit entry.
    pub(crate) fn sign(&self, entry: NewAuditEntry) -> NewAuditEntry {
        let address = self.address.to_canonical().to_string();
        entry.from_client(Some(&address), self.agent.as_deref())
    }
}
