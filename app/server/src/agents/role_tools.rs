//! Tools of the MCP servers that a role may use.

use std::sync::Arc;

use async_trait::async_trait;
use harness::config::NameRule;
use harness::tools::{ToolSet, ToolSource};
use parking_lot::Mutex;

/// Source without the tools of servers that a rule does not allow.
#[derive(Debug)]
pub(super) struct RoleTools {
    all: Arc<dyn ToolSource>,
    servers: NameRule,
    last: Mutex<Option<Allowed>>,
}

/// Result of applying a rule.
#[derive(Debug)]
struct Allowed {
    all: Arc<ToolSet>,
    allowed: Arc<ToolSet>,
}

impl RoleTools {
    /// Creates a source with the tools of the servers that the rule allows.
    pub(super) fn new(all: Arc<dyn ToolSource>, servers: NameRule) -> Self {
        Self {
            all,
            servers,
            last: Mutex::default(),
        }
    }
}

#[async_trait]
impl ToolSource for RoleTools {
    async fn tools(&self) -> Arc<ToolSet> {
        let all = self.all.tools().await;
        if self.servers.allows_all() {
            return all;
        }
        let mut last = self.last.lock();
        if let Some(last) = last.as_ref().filter(|last| Arc::ptr_eq(&last.all, &all)) {
            return last.allowed.clone();
        }
        let allowed = all.tools().iter().filter(|tool| {
            let server = tool.server();
            server.is_none_or(|server| self.servers.allows(server))
        });
        let allowed = Arc::new(ToolSet::new(all.version(), allowed.cloned().collect()));
        *last = Some(Allowed {
            all,
            allowed: allowed.clone(),
        });
        allowed
    }
}
