//! Routes of the installation, its skills and agents.

use super::operations::{change, read, remove, send, write};
use crate::openapi::groups::{AGENTS, SETTINGS, SKILLS};
use crate::openapi::{Routes, delete, number, post, signed, text, word};
use crate::requests::bodies::{
    AgentCreate, AgentUpdate, InputPolish, McpConfig, McpSwitch, SkillInstall, SkillRollback,
    SkillSwitch, SkillText, UserProfile,
};
use crate::responses::documented::DeerFlowAnswer;
use crate::routes::runs::STATUSES;
use crate::routes::{agents, assist, catalog, console, mcp, skills};

pub(super) fn routes() -> Routes {
    installation()
        .merge(mcp_servers())
        .merge(skill_routes())
        .merge(agent_routes())
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
        "Returns the caller's token usage by day.",
    );
    let polish = send(
        SETTINGS,
        "/input-polish",
        "polish_input",
        "Rewrites a draft.",
    );
    Routes::default()
        .routes(
            read(
                SETTINGS,
                "/console/stats",
                "get_console_stats",
                "Returns the totals of the caller's runs.",
            )
            .handled_by(console::stats),
        )
        .routes(
            runs.query("limit", number(1, 100, 20), "Maximum number of results.")
                .query(
                    "offset",
                    number(0, 1_000_000_000, 0),
                    "Number of results to skip.",
                )
                .query("status", word(STATUSES), "Only results with this status.")
                .handled_by(console::runs),
        )
        .routes(
            usage
                .query("days", number(1, 90, 14), "Number of days.")
                .query(
                    "tz_offset_minutes",
                    signed(840),
                    "Offset of the caller's time zone from UTC, in minutes.",
                )
                .handled_by(console::usage),
        )
        .routes(
            read(SETTINGS, "/models", "list_models", "Lists the models.")
                .handled_by(catalog::models),
        )
        .routes(
            read(SETTINGS, "/models/{name}", "get_model", "Returns a model.")
                .handled_by(catalog::model),
        )
        .routes(
            read(
                SETTINGS,
                "/features",
                "get_features",
                "Lists the enabled features.",
            )
            .handled_by(catalog::features),
        )
        .routes(
            read(
                SETTINGS,
                "/suggestions/config",
                "get_suggestions_config",
                "Returns the settings of suggestions.",
            )
            .handled_by(catalog::suggestions_config),
        )
        .routes(
            polish
                .body::<InputPolish>()
                .fails_with(&[400, 404])
                .handled_by(assist::polish),
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
                "Returns the MCP servers, with secrets redacted.",
            )
            .handled_by(mcp::get),
        )
        .routes(
            write(
                SETTINGS,
                CONFIG,
                "put_mcp_config",
                "Replaces the MCP servers.",
            )
            .body::<McpConfig>()
            .handled_by(mcp::put),
        )
        .routes(
            change(
                SETTINGS,
                CONFIG,
                "patch_mcp_config",
                "Enables or disables an MCP server.",
            )
            .body::<McpSwitch>()
            .fails_with(&[404])
            .handled_by(mcp::patch),
        )
        .routes(
            send(
                SETTINGS,
                "/mcp/cache/reset",
                "reset_mcp_cache",
                "Reconnects the MCP servers.",
            )
            .handled_by(mcp::reset),
        )
}

fn skill_routes() -> Routes {
    const OWN: &str = "/skills/custom/{name}";
    let install = send(
        SKILLS,
        "/skills/install",
        "install_skill",
        "Installs an archive from a thread's files.",
    );
    let switch = write(
        SKILLS,
        "/skills/{name}",
        "put_skill",
        "Enables or disables a skill.",
    );
    let roll_back = send(
        SKILLS,
        "/skills/custom/{name}/rollback",
        "roll_back_skill",
        "Reverts a change of a custom skill.",
    );
    Routes::default()
        .routes(
            read(SKILLS, "/skills", "list_skills", "Lists the skills.").handled_by(skills::list),
        )
        .routes(
            install
                .body::<SkillInstall>()
                .fails_with(&[404, 409])
                .handled_by(skills::install),
        )
        .routes(
            send(
                SKILLS,
                "/skills/reload",
                "reload_skills",
                "Reloads all skills.",
            )
            .handled_by(skills::reload),
        )
        .routes(
            read(
                SKILLS,
                "/skills/custom",
                "list_own_skills",
                "Lists the user's custom skills.",
            )
            .handled_by(skills::list_own),
        )
        .routes(
            read(
                SKILLS,
                OWN,
                "get_own_skill",
                "Returns a custom skill with its text.",
            )
            .handled_by(skills::get_own),
        )
        .routes(
            write(
                SKILLS,
                OWN,
                "put_own_skill",
                "Updates the text of a custom skill.",
            )
            .body::<SkillText>()
            .handled_by(skills::put_own),
        )
        .routes(
            remove(SKILLS, OWN, "delete_own_skill", "Deletes a custom skill.")
                .handled_by(skills::delete_own),
        )
        .routes(
            read(
                SKILLS,
                "/skills/custom/{name}/history",
                "get_skill_history",
                "Lists the changes of a custom skill.",
            )
            .handled_by(skills::history),
        )
        .routes(
            roll_back
                .body::<SkillRollback>()
                .fails_with(&[409])
                .handled_by(skills::roll_back),
        )
        .routes(
            read(SKILLS, "/skills/{name}", "get_skill", "Returns a skill.").handled_by(skills::get),
        )
        .routes(switch.body::<SkillSwitch>().handled_by(skills::put))
}

fn agent_routes() -> Routes {
    const ONE: &str = "/agents/{name}";
    let create = post("/agents", "create_agent", "Creates an agent.").tag(AGENTS);
    let delete_agent = delete(ONE, "delete_agent", "Deletes an agent with its memory.")
        .tag(AGENTS)
        .names();
    let check = read(
        AGENTS,
        "/agents/check",
        "check_agent_name",
        "Reports whether an agent name is available.",
    );
    let update = write(AGENTS, ONE, "update_agent", "Updates an agent.");
    Routes::default()
        .routes(
            read(
                AGENTS,
                "/agents",
                "list_agents",
                "Lists the user's agents and the shared ones.",
            )
            .handled_by(agents::list),
        )
        .routes(
            create
                .body::<AgentCreate>()
                .returns_with_status::<DeerFlowAnswer>(201, "The agent.")
                .fails_with(&[409])
                .handled_by(agents::create),
        )
        .routes(
            check
                .query("name", text(), "Name of the agent.")
                .handled_by(agents::check),
        )
        .routes(read(AGENTS, ONE, "get_agent", "Returns an agent.").handled_by(agents::get))
        .routes(
            update
                .body::<AgentUpdate>()
                .fails_with(&[409])
                .handled_by(agents::update),
        )
        .routes(
            delete_agent
                .returns_empty(204, "Deleted.")
                .fails_with(&[409])
                .handled_by(agents::delete),
        )
        .routes(
            read(
                AGENTS,
                "/user-profile",
                "get_user_profile",
                "Returns the user profile.",
            )
            .handled_by(agents::profile),
        )
        .routes(
            write(
                AGENTS,
                "/user-profile",
                "put_user_profile",
                "Updates the user profile.",
            )
            .body::<UserProfile>()
            .handled_by(agents::save_profile),
        )
}
