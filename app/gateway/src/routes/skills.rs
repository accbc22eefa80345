//! `/skills`: what agents know how to do, switched, installed and edited.

use axum::Json;
use axum::extract::State;
use harness::ids::ThreadId;
use harness::runtime::actor_context::effective_user_id;
use harness::sandbox::{Fault, VirtualPath};
use harness::skills::{ARCHIVE_ENDING, Category, Skill, SkillInstalled, SkillList, SkillView};
use serde_json::{Value, json};

use super::{Answer, App};
use crate::access::require_admin;
use crate::error::ApiError;
use crate::extract::{Body, Fields, Ids};

/// What somebody reads who may not do this.
const ADMINS_ONLY: &str = "Admin privileges required to manage skills.";

/// All that the user has.
pub(crate) async fn list(State(state): App) -> Answer {
    let skills = state.skills.list(&effective_user_id()).await?;
    Ok(Json(json!(skills.iter().collect::<SkillList>())))
}

pub(crate) async fn get(State(state): App, ids: Ids) -> Answer {
    Ok(Json(json!(SkillView::from(
        &state
            .skills
            .get(&effective_user_id(), ids.text("name"))
            .await?
    ))))
}

/// Switches a skill.
pub(crate) async fn put(State(state): App, ids: Ids, Body(mut body): Body) -> Answer {
    require_admin(ADMINS_ONLY)?;
    if body.value("enabled").is_none() {
        body.missing("enabled");
    }
    let enabled = body.flag("enabled").unwrap_or_default();
    body.finish()?;
    Ok(Json(json!(SkillView::from(
        &state
            .skills
            .switch(&effective_user_id(), ids.text("name"), enabled)
            .await?
    ))))
}

/// Installs an archive that lies among a thread's files.
pub(crate) async fn install(State(state): App, Body(mut body): Body) -> Answer {
    require_admin(ADMINS_ONLY)?;
    let (thread, path) = (body.required_text("thread_id"), body.required_text("path"));
    body.finish()?;
    state.health.require_space()?;
    let thread =
        ThreadId::parse(thread).map_err(|error| ApiError::Unprocessable(error.to_string()))?;
    let path = archive_path(&path)?;
    let user = effective_user_id();
    let (archive, _) = state
        .files
        .thread(&user, &thread)
        .open_read(&path)
        .await
        .map_err(|error| match error.fault() {
            Some(Fault::NotFound | Fault::NotDirectory) => {
                ApiError::NotFound(format!("Skill file not found: {path}"))
            }
            Some(Fault::IsDirectory | Fault::NotRegular | Fault::Symlink | Fault::Permission) => {
                ApiError::BadRequest(format!("Path is not a file: {path}"))
            }
            _ => error.into(),
        })?;
    let skill = state.skills.install(&user, archive).await?;
    Ok(Json(json!(SkillInstalled::from(&skill))))
}

/// Reads everything anew.
pub(crate) async fn reload(State(state): App) -> Answer {
    require_admin(ADMINS_ONLY)?;
    state.skills.reload();
    Ok(Json(
        json!({ "success": true, "scope": "process", "message": "Skills are read anew from the next use on." }),
    ))
}

/// The user's own.
pub(crate) async fn list_own(State(state): App) -> Answer {
    require_admin(ADMINS_ONLY)?;
    let mut skills = state.skills.list(&effective_user_id()).await?;
    skills.retain(|skill| skill.category == Category::Custom);
    Ok(Json(json!(skills.iter().collect::<SkillList>())))
}

pub(crate) async fn get_own(State(state): App, ids: Ids) -> Answer {
    require_admin(ADMINS_ONLY)?;
    Ok(Json(with_text(
        state
            .skills
            .own(&effective_user_id(), ids.text("name"))
            .await?,
    )))
}

pub(crate) async fn put_own(State(state): App, ids: Ids, Body(mut body): Body) -> Answer {
    require_admin(ADMINS_ONLY)?;
    let text = body.required_text("content");
    body.finish()?;
    state.health.require_space()?;
    Ok(Json(with_text(
        state
            .skills
            .edit(&effective_user_id(), ids.text("name"), text)
            .await?,
    )))
}

pub(crate) async fn delete_own(State(state): App, ids: Ids) -> Answer {
    require_admin(ADMINS_ONLY)?;
    state
        .skills
        .remove(&effective_user_id(), ids.text("name"))
        .await?;
    Ok(Json(json!({ "success": true })))
}

pub(crate) async fn history(State(state): App, ids: Ids) -> Answer {
    require_admin(ADMINS_ONLY)?;
    Ok(Json(
        json!({ "history": state.skills.history(&effective_user_id(), ids.text("name")).await? }),
    ))
}

pub(crate) async fn roll_back(State(state): App, ids: Ids, Body(mut body): Body) -> Answer {
    require_admin(ADMINS_ONLY)?;
    let index = index(&mut body);
    body.finish()?;
    state.health.require_space()?;
    Ok(Json(with_text(
        state
            .skills
            .roll_back(&effective_user_id(), ids.text("name"), index.unwrap_or(-1))
            .await?,
    )))
}

/// Which change to go back before; the last one when nothing is said.
fn index(body: &mut Fields) -> Option<i64> {
    let given = body.value("history_index")?.clone();
    match given.as_i64() {
        Some(index) => Some(index),
        None => body.refuse(
            "int_type",
            "history_index",
            "Input should be a valid integer",
            &given,
        ),
    }
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
