//! `/skills`: list, switch, install and edit skills.

use axum::Json;
use axum::extract::State;
use deerflow_domain::accounts::AuditAction;
use harness::ids::ThreadId;
use harness::runtime::actor_context::effective_user_id;
use harness::sandbox::{FileFailure, VirtualPath};
use harness::skills::{ARCHIVE_ENDING, Category, Skill, SkillInstalled, SkillList, SkillView};
use serde_json::{Value, json};

use super::auth::recorder::Recorder;
use super::{App, JsonResult};
use crate::error::ApiError;
use crate::extract::{Body, Ids};
use crate::guard::auth::require_admin;
use crate::guard::permissions::rules_of_caller;
use crate::requests::bodies::{SkillInstall, SkillRollback, SkillSwitch, SkillText};
use crate::state::AgentServices;

/// Error for users without permission.
const ADMINS_ONLY: &str = "Admin privileges required to manage skills.";

/// Lists the user's skills that the role of the user may use.
pub(crate) async fn list(State(state): App) -> JsonResult {
    let skills = &state.agent_services.skills;
    let mut skills = skills.list(&effective_user_id()).await?;
    if let Some(rules) = rules_of_caller(&*state.security.access).await? {
        skills.retain(|skill| rules.skills.allows(skill.name()));
    }
    Ok(Json(json!(skills.iter().collect::<SkillList>())))
}

pub(crate) async fn get(State(agents): State<AgentServices>, ids: Ids) -> JsonResult {
    Ok(Json(json!(SkillView::from(
        &agents
            .skills
            .get(&effective_user_id(), ids.text("name"))
            .await?
    ))))
}

/// Enables or disables a skill.
pub(crate) async fn put(
    State(agents): State<AgentServices>,
    recorder: Recorder,
    ids: Ids,
    body: Body<SkillSwitch>,
) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    let SkillSwitch { enabled } = body.valid()?;
    let (user, name) = (effective_user_id(), ids.text("name"));
    let skill = agents.skills.switch(&user, name, enabled).await?;
    recorder.record(AuditAction::SkillChanged, name).await;
    Ok(Json(json!(SkillView::from(&skill))))
}

/// Installs an archive from a thread's files.
pub(crate) async fn install(
    State(state): App,
    recorder: Recorder,
    body: Body<SkillInstall>,
) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    let SkillInstall { thread_id, path } = body.valid()?;
    state.observability.health.require_space()?;
    let thread =
        ThreadId::parse(thread_id).map_err(|error| ApiError::Unprocessable(error.to_string()))?;
    let path = archive_path(&path)?;
    let user = effective_user_id();
    let (archive, _) = state
        .thread_services
        .files
        .thread(&user, &thread)
        .open_read(&path)
        .await
        .map_err(|error| match error.fault() {
            Some(FileFailure::NotFound | FileFailure::NotDirectory) => {
                ApiError::NotFound(format!("Skill file not found: {path}"))
            }
            Some(
                FileFailure::IsDirectory
                | FileFailure::NotRegular
                | FileFailure::Symlink
                | FileFailure::Permission,
            ) => ApiError::BadRequest(format!("Path is not a file: {path}")),
            _ => error.into(),
        })?;
    let skill = state.agent_services.skills.install(&user, archive).await?;
    recorder
        .record(AuditAction::SkillChanged, skill.name())
        .await;
    Ok(Json(json!(SkillInstalled::from(&skill))))
}

/// Reloads all skills.
pub(crate) async fn reload(State(agents): State<AgentServices>) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    agents.skills.reload();
    Ok(Json(
        json!({ "success": true, "scope": "process", "message": "Skills will be reloaded at their next use." }),
    ))
}

/// Lists the user's own skills.
pub(crate) async fn list_own(State(agents): State<AgentServices>) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    let mut skills = agents.skills.list(&effective_user_id()).await?;
    skills.retain(|skill| skill.category == Category::Custom);
    Ok(Json(json!(skills.iter().collect::<SkillList>())))
}

pub(crate) async fn get_own(State(agents): State<AgentServices>, ids: Ids) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    Ok(Json(with_text(
        agents
            .skills
            .own(&effective_user_id(), ids.text("name"))
            .await?,
    )))
}

pub(crate) async fn put_own(
    State(state): App,
    recorder: Recorder,
    ids: Ids,
    body: Body<SkillText>,
) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    let SkillText { content } = body.valid()?;
    state.observability.health.require_space()?;
    let (user, name) = (effective_user_id(), ids.text("name"));
    let skills = &state.agent_services.skills;
    let edited = skills.edit(&user, name, content).await?;
    recorder.record(AuditAction::SkillChanged, name).await;
    Ok(Json(with_text(edited)))
}

pub(crate) async fn delete_own(
    State(agents): State<AgentServices>,
    recorder: Recorder,
    ids: Ids,
) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    let name = ids.text("name");
    agents.skills.remove(&effective_user_id(), name).await?;
    recorder.record(AuditAction::SkillChanged, name).await;
    Ok(Json(json!({ "success": true })))
}

pub(crate) async fn history(State(agents): State<AgentServices>, ids: Ids) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    Ok(Json(
        json!({ "history": agents.skills.history(&effective_user_id(), ids.text("name")).await? }),
    ))
}

pub(crate) async fn roll_back(
    State(state): App,
    recorder: Recorder,
    ids: Ids,
    body: Body<SkillRollback>,
) -> JsonResult {
    require_admin(ADMINS_ONLY)?;
    // The default is the last change.
    let index = body.valid()?.history_index.unwrap_or(-1);
    state.observability.health.require_space()?;
    let (user, name) = (effective_user_id(), ids.text("name"));
    let skills = &state.agent_services.skills;
    let restored = skills.roll_back(&user, name, index).await?;
    recorder.record(AuditAction::SkillChanged, name).await;
    Ok(Json(with_text(restored)))
}

fn archive_path(raw: &str) -> Result<VirtualPath, ApiError> {
    let path = VirtualPath::parse(raw).map_err(|error| ApiError::BadRequest(error.to_string()))?;
    if path.file_name().ends_with(ARCHIVE_ENDING) {
        return Ok(path);
    }
    Err(ApiError::BadRequest(format!(
        "File must have the extension {ARCHIVE_ENDING}"
    )))
}

fn with_text((skill, text): (Skill, String)) -> Value {
    let mut value = json!(SkillView::from(&skill));
    value["content"] = text.into();
    value
}
