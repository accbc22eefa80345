//! Creates the agents of the current configuration.

use std::sync::Arc;

use harness::acp::AcpContext;

use super::context::Context;
use super::resources::Resources;
use super::stores::Stores;
use super::{mcp, security, web};
use crate::agents::configured::{AgentPorts, ConfiguredAgents};

pub(super) fn open(
    context: &Context<'_>,
    stores: &Stores,
    resources: &Resources,
) -> Arc<ConfiguredAgents> {
    let environment = context.config.environment();
    let ports = AgentPorts {
        files: resources.files.clone(),
        skills: resources.skills.clone(),
        memories: resources.memories.clone(),
        custom: resources.custom.clone(),
        commands: resources.commands.clone(),
        web: web::factory(environment),
        live_tools: resources.mcp.tools(),
        acp: Arc::new(AcpContext::new(
            resources.files.clone(),
            mcp::program_variables(environment),
            Some(resources.mcp.config()),
        )),
        access: security::access(context, stores),
        clock: stores.clock.clone(),
        tasks: context.tasks.clone(),
        testing: context.settings.is_loopback(),
    };
    Arc::new(ConfiguredAgents::new(context.config.clone(), ports))
}
