//! `/agents` and `/user-profile`: agents that users make, and what users say of themselves. Off unless `agents_api.enabled`.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use harness::agents::custom::{AgentName, CustomAgent, ModelOverrides, change, change_profile};
use harness::memory::{MemoryError, MemoryScope};
use harness::runtime::actor_context::effective_user_id;
use serde_json::{Value, json};

use super::{Answer, App};
use crate::error::ApiError;
use crate::extract::{Body, Fields, Ids, Query};
use crate::state::GatewayState;

const EFFORTS: [(&str, &str); 3] = [("low", "low"), ("medium", "medium"), ("high", "high")];

/// `GET /agents`: the user's, and those that everybody has.
pub(crate) async fn list(State(state): App) -> Answer {
    switched_on(&state)?;
    let agents = state.custom_agents.list(&effective_user_id()).await?;
    Ok(Json(
        json!({ "agents": agents.iter().map(|(name, agent)| shown(name, agent)).collect::<Vec<_>>() }),
    ))
}

/// `GET /agents/check`: whether an agent of this name can be made.
pub(crate) async fn check(State(state): App, query: Query) -> Answer {
    switched_on(&state)?;
    let name = named(query.get("name").unwrap_or_default())?;
    let known = state.custom_agents.get(&effective_user_id(), &name).await?;
    Ok(Json(json!({ "available": known.is_none(), "name": name })))
}

/// `GET /agents/{name}`.
pub(crate) async fn get(State(state): App, ids: Ids) -> Answer {
    switched_on(&state)?;
    let name = named(ids.text("name"))?;
    let agent = state
        .custom_agents
        .get(&effective_user_id(), &name)
        .await?
        .ok_or_else(|| absent(&name))?;
    Ok(Json(shown(&name, &agent)))
}

/// `POST /agents`.
pub(crate) async fn create(
    State(state): App,
    Body(mut body): Body,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    switched_on(&state)?;
    let name = body.required_text("name");
    let draft = Draft::read(&mut body);
    body.finish()?;
    state.health.require_space()?;
    let name = named(&name)?;
    if name.is_reserved() {
        return Err(ApiError::Unprocessable(format!(
            "Invalid agent name '{name}'. The name is reserved."
        )));
    }
    draft.check_model(&state, None)?;
    let agent = change(
        &*state.custom_agents,
        &effective_user_id(),
        &name,
        |known| match known {
            Some(_) => Err(ApiError::Conflict(format!("Agent '{name}' already exists"))),
            None => Ok(Some(draft.over(CustomAgent::default()))),
        },
    )
    .await?;
    Ok((
        StatusCode::CREATED,
        Json(shown(&name, &agent.unwrap_or_default())),
    ))
}

/// `PUT /agents/{name}`: what the body leaves out stays.
pub(crate) async fn update(State(state): App, ids: Ids, Body(mut body): Body) -> Answer {
    switched_on(&state)?;
    let name = named(ids.text("name"))?;
    let draft = Draft::read(&mut body);
    body.finish()?;
    state.health.require_space()?;
    let agent = change(
        &*state.custom_agents,
        &effective_user_id(),
        &name,
        |known| {
            let known = own(&name, known)?;
            draft.check_model(&state, known.model.as_deref())?;
            Ok::<_, ApiError>(Some(draft.over(known)))
        },
    )
    .await?;
    Ok(Json(shown(&name, &agent.unwrap_or_default())))
}

/// `DELETE /agents/{name}`.
pub(crate) async fn delete(State(state): App, ids: Ids) -> Result<StatusCode, ApiError> {
    switched_on(&state)?;
    let name = named(ids.text("name"))?;
    let user = effective_user_id();
    let removed = change(&*state.custom_agents, &user, &name, |known| {
        own(&name, known).map(|_| None)
    })
    .await;
    // It may have gone with a request that could not forget what it remembered.
    let is_absent = matches!(removed, Err(ApiError::NotFound(_)));
    let remembers = is_absent
        && state
            .memories
            .agents(&user)
            .await?
            .iter()
            .any(|agent| agent == name.as_str());
    if remembers || removed.is_ok() {
        // Whoever has this name next is somebody else.
        let memory = MemoryScope {
            user,
            agent: Some(name.to_string()),
        };
        state
            .memories
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
pub(crate) async fn profile(State(state): App) -> Answer {
    switched_on(&state)?;
    Ok(Json(said(
        &state.custom_agents.profile(&effective_user_id()).await?,
    )))
}

/// `PUT /user-profile`.
pub(crate) async fn save_profile(State(state): App, Body(mut body): Body) -> Answer {
    switched_on(&state)?;
    let content = body.text("content").unwrap_or_default();
    body.finish()?;
    state.health.require_space()?;
    change_profile(&*state.custom_agents, &effective_user_id(), &content).await?;
    Ok(Json(said(&content)))
}

fn said(profile: &str) -> Value {
    json!({ "content": (!profile.is_empty()).then_some(profile) })
}

/// The web UI looks for the name of the switch in the text.
fn switched_on(state: &GatewayState) -> Result<(), ApiError> {
    match state.info.features().agents_api {
        true => Ok(()),
        false => Err(ApiError::Forbidden(
            "Custom agents are not available: agents_api.enabled is false".to_owned(),
        )),
    }
}

fn named(text: &str) -> Result<AgentName, ApiError> {
    AgentName::parse(text).map_err(|error| {
        let name = error.0;
        ApiError::Unprocessable(format!("Invalid agent name '{name}'. Must match ^[A-Za-z0-9-]+$ and have at most 64 characters."))
    })
}

fn absent(name: &AgentName) -> ApiError {
    ApiError::NotFound(format!("Agent '{name}' not found"))
}

/// The agent, if it is one that its user can change.
fn own(name: &AgentName, known: Option<CustomAgent>) -> Result<CustomAgent, ApiError> {
    match known.ok_or_else(|| absent(name))? {
        agent if agent.shared => Err(ApiError::Conflict(format!(
            "Agent '{name}' belongs to everybody and cannot be changed"
        ))),
        agent => Ok(agent),
    }
}

fn shown(name: &AgentName, agent: &CustomAgent) -> Value {
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

/// What a body says of an agent. The outer `None` is what it says nothing of, the inner one is null: the usual.
#[derive(Debug, Clone)]
struct Draft {
    description: Option<String>,
    soul: Option<String>,
    model: Option<Option<String>>,
    tool_groups: Option<Option<Vec<String>>>,
    skills: Option<Option<Vec<String>>>,
    model_settings: Option<Option<ModelOverrides>>,
    thinking_enabled: Option<Option<bool>>,
    reasoning_effort: Option<Option<String>>,
}

impl Draft {
    fn read(body: &mut Fields) -> Self {
        Self {
            description: body.text("description"),
            soul: body.text("soul"),
            model: given(body, "model", Fields::text),
            tool_groups: given(body, "tool_groups", Fields::texts),
            skills: given(body, "skills", Fields::texts),
            model_settings: given(body, "model_settings", overrides),
            thinking_enabled: given(body, "thinking_enabled", Fields::flag),
            reasoning_effort: given(body, "reasoning_effort", |body, key| {
                body.word(key, &EFFORTS).map(str::to_owned)
            }),
        }
    }

    fn over(&self, held: CustomAgent) -> CustomAgent {
        CustomAgent {
            description: self.description.clone().unwrap_or(held.description),
            soul: self.soul.clone().unwrap_or(held.soul),
            model: self.model.clone().unwrap_or(held.model),
            tool_groups: self.tool_groups.clone().unwrap_or(held.tool_groups),
            skills: self.skills.clone().unwrap_or(held.skills),
            model_settings: self.model_settings.clone().unwrap_or(held.model_settings),
            thinking_enabled: self.thinking_enabled.unwrap_or(held.thinking_enabled),
            reasoning_effort: self
                .reasoning_effort
                .clone()
                .unwrap_or(held.reasoning_effort),
            ..held
        }
    }

    /// Refuses a model that there is not. One that the agent has already may have gone from the configuration since.
    fn check_model(&self, state: &GatewayState, held: Option<&str>) -> Result<(), ApiError> {
        match self.model.as_ref().and_then(Option::as_deref) {
            Some(model)
                if held != Some(model)
                    && state.info.models().iter().all(|known| known.name != model) =>
            {
                Err(ApiError::Unprocessable(format!(
                    "Model '{}' not found",
                    model.chars().take(80).collect::<String>()
                )))
            }
            _ => Ok(()),
        }
    }
}

/// A field that may be null, if the body has it.
fn given<T>(
    body: &mut Fields,
    key: &str,
    read: impl FnOnce(&mut Fields, &str) -> Option<T>,
) -> Option<Option<T>> {
    body.map().contains_key(key).then(|| read(body, key))
}

fn overrides(body: &mut Fields, key: &str) -> Option<ModelOverrides> {
    let given = body.object(key)?;
    let input = Value::Object(given.clone());
    if let Some(unknown) = given
        .keys()
        .find(|name| !["temperature", "max_tokens"].contains(&name.as_str()))
    {
        return body.refuse(
            "extra_forbidden",
            key,
            format!("Extra inputs are not permitted: {unknown}"),
            &input,
        );
    }
    let number = |name: &str| given.get(name).filter(|value| !value.is_null());
    let read = ModelOverrides {
        temperature: number("temperature")
            .and_then(Value::as_f64)
            .filter(|value| (0.0..=2.0).contains(value)),
        max_tokens: number("max_tokens")
            .and_then(Value::as_u64)
            .filter(|value| (1..=200_000).contains(value)),
    };
    if number("temperature").is_some() != read.temperature.is_some() {
        return body.refuse(
            "float_type",
            key,
            "temperature should be a number from 0 to 2",
            &input,
        );
    }
    if number("max_tokens").is_some() != read.max_tokens.is_some() {
        return body.refuse(
            "int_type",
            key,
            "max_tokens should be a whole number from 1 to 200000",
            &input,
        );
    }
    Some(read)
}
