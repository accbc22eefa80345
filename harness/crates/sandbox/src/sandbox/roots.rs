//! Roots of virtual paths: the locations of files that a conversation can access.

/// Parent of the thread's three roots, as seen by models and clients.
pub const USER_DATA: &str = "/mnt/user-data";

/// Directory of skills, as seen by models.
pub const SKILLS: &str = "/mnt/skills";

/// Working directory of external (ACP) agents of the thread, read-only for models.
pub const ACP_WORKSPACE: &str = "/mnt/acp-workspace";

/// Location of files that a conversation can access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// The agent's working directory.
    Workspace,
    /// Files uploaded by the user.
    Uploads,
    /// Results for the user.
    Outputs,
    /// Working directory of external (ACP) agents for the thread; read-only for tools and commands.
    AcpWorkspace,
    /// Skills, read-only. Not a folder of the thread.
    Skills,
    /// A folder mounted by the administrator; the relative path starts at `/`. Not a folder of the
    /// thread.
    Mounts,
}

impl Root {
    /// Roots of a thread that its agent can write to, in display order.
    pub const ALL: [Self; 3] = [Self::Workspace, Self::Uploads, Self::Outputs];

    /// Name of the root's directory, on the host and in virtual paths.
    pub const fn dir_name(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::Uploads => "uploads",
            Self::Outputs => "outputs",
            Self::AcpWorkspace => "acp-workspace",
            Self::Skills => "skills",
            Self::Mounts => "mounts",
        }
    }

    pub(super) fn from_dir_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|root| root.dir_name() == name)
    }
}
