//! `/agents` and `/user-profile`: custom agents and the user's profile. Disabled unless
//! `agents_api.enabled` is set.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use harness::agents::custom::{AgentName, CustomAgent, ModelOverrides, change, change_profile};
use harness::runtime::actor_context::effective_user_id;
use harness::user_memory::{MemoryError, MemoryScope};
use serde_json::{Map, Value, json};

use super::{App, JsonResult};
use crate::error::{ApiError, truncated};
use crate::extract::{Body, Ids, Issues, Query};
use crate::requests::bodies::{AgentCreate, AgentUpdate, Effort, UserProfile};
use crate::state::GatewayState;

/// `GET /agents`: the user's agents and the shared ones.
pub(crate) async fn list(State(state): App) -> JsonResult {
    require_enabled(&state)?;
    let agents = state
        .agent_services
        .custom_agents
        .list(&effective_user_id())
        .await?;
    Ok(Json(
        json!({ "agents": agents.iter().map(|(name, agent)| agent_json(name, agent)).collect::<Vec<_>>() }),
    ))
}

/// `GET /agents/check`: reports whether an agent name is available.
pub(crate) async fn check(State(state): App, query: Query) -> JsonResult {
    require_enabled(&state)?;
    let name = parse_name(query.get("name").unwrap_or_default())?;
    let existing = state
        .agent_services
        .custom_agents
        .get(&effective_user_id(), &name)
        .await?;
    Ok(Json(
        json!({ "available": existing.is_none(), "name": name }),
    ))
}

/// `GET /agents/{name}`.
pub(crate) async fn get(State(state): App, ids: Ids) -> JsonResult {
    require_enabled(&state)?;
    let name = parse_name(ids.text("name"))?;
    let agent = state
        .agent_services
        .custom_agents
        .get(&effective_user_id(), &name)
        .await?
        .ok_or_else(|| not_found(&name))?;
    Ok(Json(agent_json(&name, &agent)))
}

/// `POST /agents`.
pub(crate) async fn create(
    State(state): App,
    body: Body<AgentCreate>,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    require_enabled(&state)?;
    let (body, mut issues) = body.parts();
    let patch = AgentPatch {
        description: body.description,
        soul: body.soul,
        model: body.model,
        tool_groups: body.tool_groups,
        skills: body.skills,
        model_settings: overrides(body.model_settings, &mut issues),
        thinking_enabled: body.thinking_enabled,
        reasoning_effort: effort(body.reasoning_effort),
    };
    issues.finish()?;
    let name = body.name;
    state.observability.health.require_space()?;
    let name = parse_name(&name)?;
    if name.is_reserved() || name.is_flow_name() {
        return Err(ApiError::Unprocessable(format!(
            "Invalid agent name '{name}'. The name is reserved."
        )));
    }
    patch.check_model(&state, None)?;
    let agent = change(
        &*state.agent_services.custom_agents,
        &effective_user_id(),
        &name,
        |existing| match existing {
            Some(_) => Err(ApiError::Conflict(format!("Agent '{name}' already exists"))),
            None => Ok(Some(patch.apply_to(CustomAgent::default()))),
        },
    )
    .await?;
    Ok((
        StatusCode::CREATED,
        Json(agent_json(&name, &agent.unwrap_or_default())),
    ))
}

/// `PUT /agents/{name}`: missing fields stay unchanged.
pub(crate) async fn update(State(state): App, ids: Ids, body: Body<AgentUpdate>) -> JsonResult {
    require_enabled(&state)?;
    let name = parse_name(ids.text("name"))?;
    let (body, mut issues) = body.parts();
    let patch = AgentPatch {
        description: body.description,
        soul: body.soul,
        model: body.model,
        tool_groups: body.tool_groups,
        skills: body.skills,
        model_settings: overrides(body.model_settings, &mut issues),
        thinking_enabled: body.thinking_enabled,
        reasoning_effort: effort(body.reasoning_effort),
    };
    issues.finish()?;
    state.observability.health.require_space()?;
    let agent = change(
        &*state.agent_services.custom_agents,
        &effective_user_id(),
        &name,
        |existing| {
            let existing = require_own(&name, existing)?;
            patch.check_model(&state, existing.model.as_deref())?;
            Ok::<_, ApiError>(Some(patch.apply_to(existing)))
        },
    )
    .await?;
    Ok(Json(agent_json(&name, &agent.unwrap_or_default())))
}

/// `DELETE /agents/{name}`.
pub(crate) async fn delete(State(state): App, ids: Ids) -> Result<StatusCode, ApiError> {
    require_enabled(&state)?;
    let name = parse_name(ids.text("name"))?;
    let user = effective_user_id();
    let removed = change(
        &*state.agent_services.custom_agents,
        &user,
        &name,
        |existing| require_own(&name, existing).map(|_| None),
    )
    .await;
    // An earlier request may have removed the agent and then failed to remove its memory.
    let is_absent = matches!(removed, Err(ApiError::NotFound(_)));
    let remembers = is_absent
        && state
            .agent_services
            .user_memories
            .agents(&user)
            .await?
            .iter()
            .any(|agent| agent == name.as_str());
    if remembers || removed.is_ok() {
        // The next agent with this name must not inherit the memory.
        let memory = MemoryScope {
            user,
            agent: Some(name.to_string()),
        };
        state
            .agent_services
            .user_memories
            .forget(&memory)
            .await
            .map_err(|error| match error {
                MemoryError::Store(error) => error.into(),
                error => ApiError::Conflict(error.to_string()),
            })?;
    }
    removed.map(|_| StatusCode::NO_CONTENT)
}

/// `GET /user-profile`.
pub(crate) async fn profile(State(state): App) -> JsonResult {
    require_enabled(&state)?;
    Ok(Json(profile_json(
        &state
            .agent_services
            .custom_agents
            .profile(&effective_user_id())
            .await?,
    )))
}

/// `PUT /user-profile`.
pub(crate) async fn save_profile(State(state): App, body: Body<UserProfile>) -> JsonResult {
    require_enabled(&state)?;
    let content = body.valid()?.content.unwrap_or_default();
    state.observability.health.require_space()?;
    change_profile(
        &*state.agent_services.custom_agents,
        &effective_user_id(),
        &content,
    )
    .await?;
    Ok(Json(profile_json(&content)))
}

fn profile_json(profile: &str) -> Value {
    json!({ "content": (!profile.is_empty()).then_some(profile) })
}

/// Rejects the request if custom agents are disabled. The web UI searches the text for the name of
/// the setting.
fn require_enabled(state: &GatewayState) -> Result<(), ApiError> {
    match state.info.features().agents_api {
        true => Ok(()),
        false => Err(ApiError::Forbidden(
            "Custom agents are not available: agents_api.enabled is false".to_owned(),
        )),
    }
}

fn parse_name(text: &str) -> Result<AgentName, ApiError> {
    AgentName::parse(text).map_err(|error| {
        let name = error.0;
        ApiError::Unprocessable(format!("Invalid agent name '{name}'. Must match ^[A-Za-z0-9-]+$ and have at most 64 characters."))
    })
}

fn not_found(name: &AgentName) -> ApiError {
    ApiError::NotFound(format!("Agent '{name}' not found"))
}

/// Returns the agent, if its user can change it.
fn require_own(name: &AgentName, existing: Option<CustomAgent>) -> Result<CustomAgent, ApiError> {
    match existing.ok_or_else(|| not_found(name))? {
        agent if agent.shared => Err(ApiError::Conflict(format!(
            "Agent '{name}' is shared by all users and cannot be changed"
        ))),
        agent => Ok(agent),
    }
}

fn agent_json(name: &AgentName, agent: &CustomAgent) -> Value {
    let settings = agent.model_settings.as_ref();
    json!({
        "name": name,
        "description": agent.description,
        "model": agent.model,
        "tool_groups": agent.tool_groups,
        "skills": agent.skills,
        "model_settings": settings.map(|set| json!({ "temperature": set.temperature, "max_tokens": set.max_tokens })),
        "thinking_enabled": agent.thinking_enabled,
        "reasoning_effort": agent.reasoning_effort,
        "soul": agent.soul,
    })
}

/// Fields of an agent in a body. The outer `None` is a missing field, the inner `None` is null,
/// which restores the default.
#[derive(Debug, Clone)]
struct AgentPatch {
    description: Option<String>,
    soul: Option<String>,
    model: Option<Option<String>>,
    tool_groups: Option<Option<Vec<String>>>,
    skills: Option<Option<Vec<String>>>,
    model_settings: Option<Option<ModelOverrides>>,
    thinking_enabled: Option<Option<bool>>,
    reasoning_effort: Option<Option<String>>,
}

impl AgentPatch {
    fn apply_to(&self, current: CustomAgent) -> CustomAgent {
        CustomAgent {
            description: self.description.clone().unwrap_or(current.description),
            soul: self.soul.clone().unwrap_or(current.soul),
            model: self.model.clone().unwrap_or(current.model),
            tool_groups: self.tool_groups.clone().unwrap_or(current.tool_groups),
            skills: self.skills.clone().unwrap_or(current.skills),
            model_settings: self
                .model_settings
                .clone()
                .unwrap_or(current.model_settings),
            thinking_enabled: self.thinking_enabled.unwrap_or(current.thinking_enabled),
            reasoning_effort: self
                .reasoning_effort
                .clone()
                .unwrap_or(current.reasoning_effort),
            ..current
        }
    }

    /// Rejects an unknown model. The agent's current model is accepted even if it is no longer
    /// configured.
    fn check_model(&self, state: &GatewayState, current: Option<&str>) -> Result<(), ApiError> {
        match self.model.as_ref().and_then(Option::as_deref) {
            Some(model)
                if current != Some(model)
                    && state
                        .info
                        .models()
                        .iter()
                        .all(|existing| existing.name != model) =>
            {
                Err(ApiError::Unprocessable(format!(
                    "Model '{}' not found",
                    truncated(model)
                )))
            }
            _ => Ok(()),
        }
    }
}

fn effort(sent: Option<Option<Effort>>) -> Option<Option<String>> {
    sent.map(|effort| effort.map(|word| word.0.to_owned()))
}

/// Checks the model settings.
fn overrides(
    sent: Option<Option<Map<String, Value>>>,
    issues: &mut Issues,
) -> Option<Option<ModelOverrides>> {
    sent.map(|settings| read_overrides(settings?, issues))
}

fn read_overrides(fields: Map<String, Value>, issues: &mut Issues) -> Option<ModelOverrides> {
    let key = "model_settings";
    let input = Value::Object(fields.clone());
    if let Some(unknown) = fields
        .keys()
        .find(|name| !["temperature", "max_tokens"].contains(&name.as_str()))
    {
        return issues.refuse(
            "extra_forbidden",
            key,
            format!("Extra inputs are not permitted: {unknown}"),
            &input,
        );
    }
    let number = |name: &str| fields.get(name).filter(|value| !value.is_null());
    let read = ModelOverrides {
        temperature: number("temperature")
            .and_then(Value::as_f64)
            .filter(|value| (0.0..=2.0).contains(value)),
        max_tokens: number("max_tokens")
            .and_then(Value::as_u64)
            .filter(|value| (1..=200_000).contains(value)),
    };
    if number("temperature").is_some() != read.temperature.is_some() {
        return issues.refuse(
            "float_type",
            key,
            "temperature should be a number from 0 to 2",
            &input,
        );
    }
    if number("max_tokens").is_some() != read.max_tokens.is_some() {
        return issues.refuse(
            "int_type",
            key,
            "max_tokens should be a whole number from 1 to 200000",
            &input,
        );
    }
    Some(read)
}
