//! Opens what agents and API clients both use: files, skills, memories, custom agents and MCP
//! servers.

use std::sync::Arc;

use harness::documents::DocumentReader;
use harness::mcp::ConfiguredMcp;
use harness::sandbox::{FileHome, FileLimits, FileQuota, Mounts};
use harness::skills::Skills;
use harness::user_memory::UserMemories;

use super::context::Context;
use super::stores::Stores;
use super::{commands, documents, mcp, skills};
use crate::agents::custom_files::FileCustomAgents;
use crate::sandbox::OpenedSandbox;
use crate::sandbox::mounts::mounted;

/// Resources of users and their threads.
#[derive(Debug)]
pub(super) struct Resources {
    pub(super) files: FileHome,
    pub(super) file_quota: FileQuota,
    pub(super) skills: Skills,
    pub(super) memories: UserMemories,
    pub(super) custom: Arc<FileCustomAgents>,
    pub(super) mcp: Arc<ConfiguredMcp>,
    pub(super) commands: OpenedSandbox,
    pub(super) documents: Option<Arc<dyn DocumentReader>>,
}

impl Resources {
    pub(super) async fn open(context: &Context<'_>, stores: &Stores) -> anyhow::Result<Self> {
        let (config, settings, tasks) = (context.config, context.settings, &context.tasks);
        let environment = config.environment();
        let extensions = skills::extensions(environment)?;
        let skills = skills::open(
            &context.now,
            settings,
            environment,
            extensions.clone(),
            stores.clock.clone(),
        )?;
        let mounts = mounted(config, settings);
        let files = FileHome::new(settings.home.as_path(), FileLimits::default())
            .with_skill_mounts(Arc::new(skills.clone()))
            .with_mounts(Mounts::new(mounts.clone()));
        let memories = UserMemories::new(
            stores.memories.clone(),
            stores.clock.clone(),
            context.ids.clone(),
        )
        // Runs and memories are in one database.
        .updated_by_commits();
        let commands = commands::open(config, settings, mounts, tasks).await;
        let custom = Arc::new(FileCustomAgents::new(files.home()));
        let mcp = mcp::open(config, extensions, &files, tasks)?;
        Ok(Self {
            file_quota: FileQuota::new(settings.home.as_path(), None),
            files,
            skills,
            memories,
            custom,
            mcp,
            commands,
            documents: documents::reader(),
        })
    }
}
