//! Groups of the routes of DeerFlow's dialect only.

/// Group of routes that describe the installation and its settings.
pub(crate) const SETTINGS: &str = "Settings";
/// Group of routes about accounts, sessions and keys.
pub(crate) const SIGN_IN: &str = "Sign-in";
/// Group of routes about chat platforms.
pub(crate) const CHANNELS: &str = "Channels";
/// Group of routes about skills.
pub(crate) const SKILLS: &str = "Skills";
/// Group of routes about agents created by users.
pub(crate) const AGENTS: &str = "Agents";
/// Group of routes about user memory.
pub(crate) const MEMORY: &str = "Memory";
/// Group of routes about files of threads.
pub(crate) const FILES: &str = "Files";
/// Group of routes that read the history of a thread.
pub(crate) const TRANSCRIPTS: &str = "Transcripts";
/// Group of routes about feedback on runs.
pub(crate) const FEEDBACK: &str = "Feedback";

/// Group of routes about scheduled tasks.
pub(crate) const SCHEDULED_TASKS: &str = "Scheduled tasks";

/// Groups with their descriptions, in display order.
pub(crate) const GROUPS: &[(&str, &str)] = &[
    (
        SETTINGS,
        "The installation, its models and MCP servers, and the totals of the caller's runs.",
    ),
    (
        SIGN_IN,
        "Accounts and sessions of people, and keys of their programs.",
    ),
    (
        CHANNELS,
        "Bots on chat platforms, and accounts that users connect.",
    ),
    (SKILLS, "Skills of agents."),
    (AGENTS, "Custom agents and the user profile."),
    (MEMORY, "Memory of the user."),
    (FILES, "Uploads and artifacts of threads."),
    (
        TRANSCRIPTS,
        "Messages and journal of a thread, its goal, and auxiliary model features.",
    ),
    (FEEDBACK, "Ratings of runs and messages."),
    (
        SCHEDULED_TASKS,
        "Prompts that run once or repeatedly, and their runs.",
    ),
];
