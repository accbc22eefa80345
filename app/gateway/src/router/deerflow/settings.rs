//! The installation, its skills and agents, and what is remembered of users.

use super::{AGENTS, MEMORY, SETTINGS, SKILLS, ask, change, read, remove, write};
use crate::openapi::{Routes, delete, number, post, signed, text, word};
use crate::routes::runs::STATUSES;
use crate::routes::{agents, aids, catalog, console, mcp, memory, meta, skills};

pub(super) fn routes() -> Routes {
    installation()
        .merge(mcp_servers())
        .merge(skill_routes())
        .merge(agent_routes())
        .merge(memories())
}

fn installation() -> Routes {
    let runs = read(
        SETTINGS,
        "/console/runs",
        "list_console_runs",
        "Lists the caller's runs of all threads, newest first.",
    );
    let usage = read(
        SETTINGS,
        "/console/usage",
        "get_console_usage",
        "Adds up the caller's tokens by day.",
    );
    let polish = ask(
        SETTINGS,
        "/input-polish",
        "polish_input",
        "Writes a draft better.",
    );
    Routes::default()
        .routes(
            read(
                SETTINGS,
                "/v1/auth/me",
                "get_me",
                "Says for whom requests act.",
            )
            .by(meta::me),
        )
        .routes(
            read(
                SETTINGS,
                "/v1/auth/setup-status",
                "get_setup_status",
                "Says whether sign-in is set up.",
            )
            .by(meta::setup_status),
        )
        .routes(
            read(
                SETTINGS,
                "/v1/auth/providers",
                "list_auth_providers",
                "Lists the ways of signing in.",
            )
            .by(meta::auth_providers),
        )
        .routes(
            read(
                SETTINGS,
                "/console/stats",
                "get_console_stats",
                "Adds up the caller's runs.",
            )
            .by(console::stats),
        )
        .routes(
            runs.query("limit", number(1, 100, 20), "How many at most.")
                .query(
                    "offset",
                    number(0, 1_000_000_000, 0),
                    "How many to leave out first.",
                )
                .query("status", word(STATUSES), "Only those in this status.")
                .by(console::runs),
        )
        .routes(
            usage
                .query("days", number(1, 90, 14), "How many days.")
                .query(
                    "tz_offset_minutes",
                    signed(840),
                    "Minutes by which the caller's clock is ahead of UTC.",
                )
                .by(console::usage),
        )
        .routes(read(SETTINGS, "/models", "list_models", "Lists the models.").by(catalog::models))
        .routes(read(SETTINGS, "/models/{name}", "get_model", "Reads a model.").by(catalog::model))
        .routes(
            read(
                SETTINGS,
                "/features",
                "get_features",
                "Says what is switched on.",
            )
            .by(catalog::features),
        )
        .routes(
            read(
                SETTINGS,
                "/suggestions/config",
                "get_suggestions_config",
                "Says how suggestions are made.",
            )
            .by(catalog::suggestions_config),
        )
        .routes(
            read(
                SETTINGS,
                "/channels/providers",
                "list_channel_providers",
                "Lists the chat platforms.",
            )
            .by(catalog::channel_providers),
        )
        .routes(
            polish
                .body("InputPolish")
                .refuses(&[400, 404])
                .by(aids::polish),
        )
}

fn mcp_servers() -> Routes {
    const CONFIG: &str = "/mcp/config";
    Routes::default()
        .routes(
            read(
                SETTINGS,
                CONFIG,
                "get_mcp_config",
                "Reads the MCP servers, without secrets.",
            )
            .by(mcp::get),
        )
        .routes(
            write(
                SETTINGS,
                CONFIG,
                "put_mcp_config",
                "Replaces the MCP servers.",
            )
            .body("McpConfig")
            .by(mcp::put),
        )
        .routes(
            change(
                SETTINGS,
                CONFIG,
                "patch_mcp_config",
                "Switches an MCP server.",
            )
            .body("McpSwitch")
            .refuses(&[404])
            .by(mcp::patch),
        )
        .routes(
            ask(
                SETTINGS,
                "/mcp/cache/reset",
                "reset_mcp_cache",
                "Asks the MCP servers anew.",
            )
            .by(mcp::reset),
        )
}

fn skill_routes() -> Routes {
    const OWN: &str = "/skills/custom/{name}";
    let install = ask(
        SKILLS,
        "/skills/install",
        "install_skill",
        "Installs an archive from a thread's files.",
    );
    let switch = write(SKILLS, "/skills/{name}", "put_skill", "Switches a skill.");
    let roll_back = ask(
        SKILLS,
        "/skills/custom/{name}/rollback",
        "roll_back_skill",
        "Undoes a change of an own skill.",
    );
    Routes::default()
        .routes(read(SKILLS, "/skills", "list_skills", "Lists the skills.").by(skills::list))
        .routes(
            install
                .body("SkillInstall")
                .refuses(&[404, 409])
                .by(skills::install),
        )
        .routes(
            ask(
                SKILLS,
                "/skills/reload",
                "reload_skills",
                "Reads all skills anew.",
            )
            .by(skills::reload),
        )
        .routes(
            read(
                SKILLS,
                "/skills/custom",
                "list_own_skills",
                "Lists the user's own skills.",
            )
            .by(skills::list_own),
        )
        .routes(
            read(
                SKILLS,
                OWN,
                "get_own_skill",
                "Reads an own skill with its text.",
            )
            .by(skills::get_own),
        )
        .routes(
            write(
                SKILLS,
                OWN,
                "put_own_skill",
                "Changes the text of an own skill.",
            )
            .body("SkillText")
            .by(skills::put_own),
        )
        .routes(
            remove(SKILLS, OWN, "delete_own_skill", "Removes an own skill.").by(skills::delete_own),
        )
        .routes(
            read(
                SKILLS,
                "/skills/custom/{name}/history",
                "get_skill_history",
                "Lists the changes of an own skill.",
            )
            .by(skills::history),
        )
        .routes(
            roll_back
                .body("SkillRollback")
                .refuses(&[409])
                .by(skills::roll_back),
        )
        .routes(read(SKILLS, "/skills/{name}", "get_skill", "Reads a skill.").by(skills::get))
        .routes(switch.body("SkillSwitch").by(skills::put))
}

fn agent_routes() -> Routes {
    const ONE: &str = "/agents/{name}";
    let create = post("/agents", "create_agent", "Makes an agent.").tag(AGENTS);
    let gone = delete(ONE, "delete_agent", "Removes an agent with its memory.")
        .tag(AGENTS)
        .names();
    let check = read(
        AGENTS,
        "/agents/check",
        "check_agent_name",
        "Says whether a name is free.",
    );
    let update = write(AGENTS, ONE, "update_agent", "Changes an agent.");
    Routes::default()
        .routes(
            read(
                AGENTS,
                "/agents",
                "list_agents",
                "Lists the user's agents and those of everybody.",
            )
            .by(agents::list),
        )
        .routes(
            create
                .body("AgentCreate")
                .answers_as_well(201, "DeerFlowAnswer", "The agent.")
                .refuses(&[409])
                .by(agents::create),
        )
        .routes(check.query("name", text(), "The name.").by(agents::check))
        .routes(read(AGENTS, ONE, "get_agent", "Reads an agent.").by(agents::get))
        .routes(
            update
                .body("AgentUpdate")
                .refuses(&[409])
                .by(agents::update),
        )
        .routes(
            gone.answers_empty(204, "It is gone.")
                .refuses(&[409])
                .by(agents::delete),
        )
        .routes(
            read(
                AGENTS,
                "/user-profile",
                "get_user_profile",
                "Reads what all agents know of the user.",
            )
            .by(agents::profile),
        )
        .routes(
            write(AGENTS, "/user-profile", "put_user_profile", "Writes it.")
                .body("UserProfile")
                .by(agents::save_profile),
        )
}

fn memories() -> Routes {
    const FACT: &str = "/memory/facts/{fact_id}";
    let status = read(
        MEMORY,
        "/memory/status",
        "get_memory_status",
        "Reads the settings and all that is remembered.",
    );
    Routes::default()
        .routes(
            read(
                MEMORY,
                "/memory",
                "get_memory",
                "Reads all that is remembered.",
            )
            .by(memory::get),
        )
        .routes(remove(MEMORY, "/memory", "clear_memory", "Forgets everything.").by(memory::clear))
        .routes(ask(MEMORY, "/memory/reload", "reload_memory", "Reads it anew.").by(memory::reload))
        .routes(
            read(
                MEMORY,
                "/memory/export",
                "export_memory",
                "Reads it to be kept elsewhere.",
            )
            .by(memory::get),
        )
        .routes(
            ask(
                MEMORY,
                "/memory/import",
                "import_memory",
                "Puts a document in its place.",
            )
            .body("MemoryImport")
            .by(memory::import),
        )
        .routes(
            read(
                MEMORY,
                "/memory/config",
                "get_memory_config",
                "Says how memory is configured.",
            )
            .by(memory::config),
        )
        .routes(status.by(memory::status))
        .routes(
            ask(MEMORY, "/memory/facts", "add_fact", "Adds a fact.")
                .body("FactAdd")
                .refuses(&[409])
                .by(memory::add),
        )
        .routes(
            change(MEMORY, FACT, "correct_fact", "Changes a fact.")
                .body("FactPatch")
                .refuses(&[409])
                .by(memory::correct),
        )
        .routes(remove(MEMORY, FACT, "remove_fact", "Removes a fact.").by(memory::remove))
}
