//! Tools of the MCP servers that a role may use.

use std::sync::Arc;

use async_trait::async_trait;
use harness::config::NameRule;
use harness::tools::{ToolSet, ToolSource};

/// Source without the tools of servers that a rule does not allow.
#[derive(Debug)]
pub(super) struct RoleTools {
    pub(super) all: Arc<dyn ToolSource>,
    pub(super) servers: NameRule,
}

#[async_trait]
impl ToolSource for RoleTools {
    async fn tools(&self) -> Arc<ToolSet> {
        let all = self.all.tools().await;
        if self.servers.allows_all() {
            return all;
        }
        let allowed = all.tools().iter().filter(|tool| {
            let server = tool.server();
            server.is_none_or(|server| self.servers.allows(server))
        });
        Arc::new(ToolSet::new(all.version(), allowed.cloned().collect()))
    }
}
